"""What counts as a clear refusal."""

import numpy as np
import pytest
from torture.clarity import UnclearError, check_refusal

from manyboost import ManyBoostRegressor
from manyboost.data.targets import check_targets


def caught(call):
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def raised(error):
    raise error


def test_a_sentence_of_the_library_is_clear():
    check_refusal(caught(lambda: ManyBoostRegressor().fit([[1.0]], [np.inf])))
    check_refusal(caught(lambda: check_targets(None, np.zeros((3, 1)))))


@pytest.mark.parametrize(
    "call",
    [
        lambda: raised(ValueError("A sentence that nobody of the library raised.")),
        lambda: ManyBoostRegressor().fit(),
        lambda: np.zeros(3) + np.zeros(4),
        lambda: raised(AssertionError("internal")),
        lambda: [].pop(),
    ],
)
def test_what_others_raise_is_not(call):
    with pytest.raises(UnclearError):
        check_refusal(caught(call))
