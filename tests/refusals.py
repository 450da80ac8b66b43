"""How calls are refused: an error of one sentence."""

import pytest


def refusal(call, error=ValueError):
    """The one sentence with which a call is refused."""
    with pytest.raises(error) as caught:
        call()
    sentence = str(caught.value)
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence
    assert ". " not in sentence, "more than one sentence"
    return sentence
