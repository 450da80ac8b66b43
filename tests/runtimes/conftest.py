"""The runtime without Python, compiled."""

import pytest

from runtimes.builds import built
from runtimes.c_library import Library


@pytest.fixture(scope="session")
def library_path():
    return built("libmanyboost_predict.so", "--crate-type", "cdylib")


@pytest.fixture(scope="session")
def library(library_path):
    return Library(library_path)


@pytest.fixture(scope="session")
def wasm():
    target = ("--target", "wasm32-unknown-unknown", "-C", "panic=abort")
    return built("manyboost.wasm", "--crate-type", "cdylib", *target)
