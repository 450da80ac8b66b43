"""The page that predicts in the browser, by WebAssembly, shows what Python predicts."""

import base64
import http.server
import json
import shutil
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import manyboost
from runtimes.builds import PREDICT

MODELS = Path(__file__).parents[1] / "models"


@pytest.fixture(scope="module")
def page(browser, wasm, tmp_path_factory):
    """The browser, at the page, which a server of this machine provides."""
    folder = tmp_path_factory.mktemp("web")
    for file in ("index.html", "manyboost.js"):
        shutil.copy(PREDICT / "web" / file, folder)
    shutil.copy(wasm, folder / "manyboost.wasm")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    browser.open(f"http://127.0.0.1:{server.server_port}/index.html", 800)
    browser.evaluate(
        "new Promise(done => { const wait = () => document.documentElement.dataset.ready"
        " ? done() : setTimeout(wait, 20); wait(); })"
    )
    yield browser
    server.shutdown()
    thread.join()
    server.server_close()


def in_javascript(page, name, script):
    """What a script says about ``model``, a golden file."""
    data = base64.b64encode((MODELS / f"{name}.mb").read_bytes()).decode()
    return page.evaluate(
        "(async () => { const { Runtime } = await import('./manyboost.js');"
        " const runtime = await Runtime.load(await fetch('manyboost.wasm'));"
        f" const bytes = Uint8Array.from(atob({data!r}), (c) => c.charCodeAt(0));"
        f" const model = runtime.open(bytes); {script} }})()"
    )


def rows_of(name):
    """Rows as JavaScript has them, and as NumPy has them."""
    stored = json.loads((MODELS / f"{name}.json").read_text())["asked"]["X"]
    return json.dumps(stored).replace("None", "NaN"), np.array(stored, float)


@pytest.mark.parametrize(
    "name",
    [
        *("relabel", "quantiles", "multioutput_classes", "independent_labels", "binary"),
        *("mixed_per_output", "constrained_categories", "cuts_in_doubles", "chosen_strategy"),
    ],
)
def test_predictions_have_the_bits_of_python(page, name):
    script, X = rows_of(name)
    # Numbers survive as JSON: both sides write digits that are read back to the same double.
    found = in_javascript(page, name, f"return model.predict({script});")
    model = manyboost.load(MODELS / f"{name}.mb")
    expected = model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)
    assert found == expected.reshape(len(X), -1).tolist()


def test_offsets_are_added_between_two_steps(page):
    name = "project_poisson_offset"
    script, X = rows_of(name)
    found = in_javascript(
        page,
        name,
        f"const raw = model.raw({script});"
        " return model.finish(raw.map((row) => row.map((f) => f + 0.5)));",
    )
    model = manyboost.load(MODELS / f"{name}.mb")
    assert found == model.predict(X, offset=np.full(len(X), 0.5)).tolist()


def test_the_page_asks_for_a_row_and_shows_predictions(page):
    upload(page, MODELS / "frames.mb")
    shown = "[...document.querySelectorAll('#predictions tr')].map(e => e.innerText.split('\\t'))"
    fields = "[...document.querySelectorAll('#row label')].map(e => e.firstChild.textContent)"
    assert page.evaluate(fields) == ["length", "colour"]
    page.evaluate(
        "(() => { const [length, colour] = document.getElementById('row').elements;"
        " length.value = '0.25'; colour.value = '1';"
        " colour.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    import pandas as pd

    row = pd.DataFrame({"length": [0.25], "colour": pd.Categorical(["red"])})
    expected = manyboost.load(MODELS / "frames.mb").predict(row)
    rows = page.evaluate(shown)
    assert [name for name, _ in rows] == ["one", "two"]
    assert [float(value) for _, value in rows] == expected.to_numpy()[0].tolist()
    assert page.complaints() == []


def test_the_page_says_why_a_file_is_refused_and_what_is_not_a_number(page):
    upload(page, MODELS / "hostile" / "tree_cycle.mb")
    problem = "document.getElementById('problem').textContent"
    assert page.evaluate(problem).startswith("This is not a sound model file: tree")
    upload(page, MODELS / "relabel.mb")
    assert page.evaluate(problem) == ""
    page.evaluate(
        "(() => { const [field] = document.getElementById('row').elements; field.value = 'x';"
        " field.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    assert page.evaluate(problem) == '"x" is not a number.'


def upload(page, path):
    """Choose a file, and wait until the page has read it."""
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    node = page.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    page.call("DOM.setFileInputFiles", nodeId=node, files=[str(path.resolve())])
    page.evaluate(
        "new Promise(done => { const wait = () => document.documentElement.dataset.read"
        f" === {path.name!r} ? done() : setTimeout(wait, 20); wait(); }})"
    )
