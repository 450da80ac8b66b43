"""Regular files are replaced at once; links are followed; pipes and devices are written to."""

import io
import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

import manyboost
from manyboost import ManyBoostRegressor
from manyboost.cli import main
from manyboost.persistence.files import replacing, same_regular_file
from refusals import refusal


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return ManyBoostRegressor(max_iter=2, random_state=0).fit(X, X[:, :2])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "x.csv"
    rows = np.random.default_rng(0).normal(size=(60, 3))
    path.write_text("a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in rows))
    return path


def read_through(pipe):
    """Read a named pipe in the background; return a function that waits for its bytes."""
    received = []
    thread = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    thread.start()

    def result():
        thread.join(30)
        return received[0]

    return result


def test_a_link_stays_and_its_file_is_replaced(model, tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "model.mb", tmp_path / "link.mb"
    target.write_bytes(b"old")
    link.symlink_to(target)
    before = target.stat().st_ino
    model.save(link)
    assert link.is_symlink()
    assert target.stat().st_ino != before
    assert manyboost.load(target).n_iter_ == 2
    assert [each.name for each in target.parent.iterdir()] == ["model.mb"]


def test_a_link_to_nothing_makes_its_file(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("new")
    with replacing(link) as file:
        file.write(b"some")
    assert link.is_symlink()
    assert (tmp_path / "new").read_bytes() == b"some"


def test_errors_name_the_file_that_was_asked_for(model, tmp_path):
    path = tmp_path / "nowhere" / "model.mb"
    with pytest.raises(FileNotFoundError) as caught:
        model.save(path)
    assert caught.value.filename == str(path)
    assert ".tmp" not in str(caught.value)
    with pytest.raises(IsADirectoryError) as caught:
        model.save(tmp_path)
    assert caught.value.filename == str(tmp_path)


def test_a_link_in_the_place_of_the_temporary_file_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    (tmp_path / ".file.new.tmp").symlink_to(other)
    for content in (b"one", b"two"):
        with replacing(tmp_path / "file", mark="new") as file:
            file.write(content)
        assert (tmp_path / "file").read_bytes() == content
    assert other.read_bytes() == b"precious"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "other"]


def test_a_folder_that_cannot_be_read_takes_files(tmp_path, monkeypatch):
    opened = os.open

    def refuse(path, flags, *arguments, **options):
        if flags & os.O_DIRECTORY:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    with replacing(tmp_path / "file") as file:
        file.write(b"some")
    assert (tmp_path / "file").read_bytes() == b"some"


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"new", "text"])
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_one_file_is_known_by_all_its_names(tmp_path):
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"")
    other.write_bytes(b"")
    (tmp_path / "soft").symlink_to(path)
    (tmp_path / "hard").hardlink_to(path)
    for name in ("a", "soft", "hard"):
        assert same_regular_file(tmp_path / name, [other, path]) == path
    assert same_regular_file(other, [path]) is None
    assert same_regular_file(tmp_path / "nothing", [path]) is None
    assert same_regular_file(os.devnull, [os.devnull]) is None


@pytest.mark.parametrize("how", ["itself", "symlink_to", "hardlink_to"])
def test_commands_do_not_overwrite_what_they_read(how, table, tmp_path, capsys):
    output, before = table, table.read_bytes()
    if how != "itself":
        output = tmp_path / "other.csv"
        getattr(output, how)(table)
    assert main(["fit", str(table), "--target", "y", "-o", str(output)]) == 2
    assert "name another file" in capsys.readouterr().err
    path = tmp_path / "model.mb"
    assert main(["fit", str(table), "--target", "y", "-o", str(path), "--max-iter", "2"]) == 0
    assert main(["predict", str(path), str(table), "-o", str(output)]) == 2
    assert main(["predict", str(path), str(table), "-o", str(path)]) == 2
    assert table.read_bytes() == before
    assert manyboost.load(path).n_iter_ == 2


def written_by(verb, table, folder):
    """A function that makes a verb write to a path; predictions and models are always the same."""
    if verb == "save":
        X = np.random.default_rng(0).normal(size=(60, 3))
        return ManyBoostRegressor(max_iter=2, random_state=0).fit(X, X[:, :2]).save
    fit = ["fit", str(table), "--target", "y", "--max-iter", "2", "--random-state", "0", "--quiet"]
    model = folder / "model.mb"
    assert main([*fit, "-o", str(model)]) == 0
    start = {
        "fit": fit,
        "predict": ["predict", str(model), str(table)],
        "export to onnx": ["export", str(model), "--to", "onnx", "--quiet"],
        "export to treelite": ["export", str(model), "--to", "treelite", "--quiet"],
    }[verb]

    def write(path):
        assert main([*start, "-o", str(path)]) == 0

    return write


@pytest.mark.parametrize("verb", ["save", "fit", "predict", "export to onnx", "export to treelite"])
def test_pipes_devices_and_links_survive_whatever_writes_to_them(verb, table, tmp_path):
    write = written_by(verb, table, tmp_path)
    plain, pipe, link = (tmp_path / name for name in ("plain", "pipe", "link"))
    null = tmp_path / "null"
    write(plain)
    os.mkfifo(pipe)
    received = read_through(pipe)
    write(pipe)
    (tmp_path / "target").write_bytes(b"old")
    link.symlink_to("target")
    write(link)
    null.symlink_to(os.devnull)
    for device in (Path(os.devnull), null):
        write(device)
        assert stat.S_ISCHR(device.stat().st_mode)
    assert link.is_symlink()
    assert null.is_symlink()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert len(plain.read_bytes()) > 100
    assert received() == plain.read_bytes()
    assert (tmp_path / "target").read_bytes() == plain.read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_open_binary_files_are_written_and_read(model, tmp_path):
    path, memory = tmp_path / "model.mb", io.BytesIO()
    model.save(path)
    model.save(memory)
    assert memory.getvalue() == path.read_bytes()
    memory.seek(0)
    with path.open("rb") as file:
        for each in (memory, file):
            assert np.array_equal(manyboost.load(each).baseline_, model.baseline_)
    broken = (
        "The open file is not a sound model file: it does not begin like a manyboost model file."
    )
    assert refusal(lambda: manyboost.load(io.BytesIO(b"other"))) == broken
    remedy = "pass a path, or a binary file (io.BytesIO, open(…, {}))."
    for other in (path.read_bytes(), io.StringIO(), None, 3):
        what = f"path is of the type {type(other).__name__}; {remedy}"
        assert refusal(lambda other=other: manyboost.load(other)) == what.format("'rb'")
        assert refusal(lambda other=other: model.save(other)) == what.format("'wb'")


class Pipe:
    """Reads what it was given, and writes piece by piece, with nothing else of a file."""

    def __init__(self, content=None):
        self.content = content

    def read(self):
        return self.content

    def write(self, piece):
        self.content += piece


def test_whatever_reads_and_writes_bytes_is_a_file(model):
    pipe = Pipe(b"")
    model.save(pipe)
    for content in (pipe.content, bytearray(pipe.content), memoryview(pipe.content)):
        assert np.array_equal(manyboost.load(Pipe(content)).baseline_, model.baseline_)
    for content in (None, "text", 3):
        what = f"read() of the open file returned the type {type(content).__name__}, not bytes; "
        assert refusal(lambda content=content: manyboost.load(Pipe(content))).startswith(what)
