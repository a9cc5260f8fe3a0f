"""The control of a recorded motion is computed again in node and in a browser."""

import re

import mujoco
import numpy as np
import pytest
from programs import MAKERS, require, run

from mbcasadi import models
from mbcasadi.codegen.targets.replay import write_record

SAME = 1e-12
TICKS = 300
NODE = """
const fs = require("fs");
eval(fs.readFileSync("%(name)s.js", "utf8") + "; globalThis.replay = replay;");
const record = new Float64Array(new Uint8Array(fs.readFileSync("inputs")).buffer);
replay(fs.readFileSync("%(name)s.wasm"), record, %(ticks)d)
  .then((out) => fs.writeFileSync("outputs", Buffer.from(out.buffer)));
"""
# As on the Cortex-M7, the sines of another library move the quadruped's u by this much of it.
OTHER_SINES = {"quadruped": 1e-7, "rti": 1e-10}


@pytest.mark.parametrize("name", MAKERS)
def test_node_gives_the_numbers_of_the_reference(name, recorded, reference, tmp_path):
    require("clang", "clang")
    require("wasm-ld", "lld")
    node = require("node", "nodejs")
    project, expected = recorded(name).project, reference(name).outputs
    project.wasm(tmp_path)
    write_record(project.manifest, tmp_path, recorded(name).inputs)
    (tmp_path / "run.js").write_text(NODE % {"name": name, "ticks": len(expected)})
    run(node, "run.js", cwd=tmp_path)
    found = np.fromfile(tmp_path / "outputs").reshape(expected.shape)
    gap = (np.abs(found - expected) / np.maximum(1, np.abs(expected).max(axis=0))).max()
    print(name, gap, (tmp_path / f"{name}.wasm").stat().st_size)
    assert gap < OTHER_SINES.get(name, SAME)


def outline(q):
    """Return (ticks, points, 2): the joints of the four-bar, and the tip, in MuJoCo's x-z plane."""
    model = mujoco.MjModel.from_xml_path(str(models.path("four_bar")))
    data, rows = mujoco.MjData(model), []
    for row in q:
        data.qpos[:] = row
        mujoco.mj_forward(model, data)
        rows.append(data.xanchor[:, [0, 2]])
    return np.array(rows)


def test_a_browser_shows_no_difference_from_the_recorded_control(recorded, reference, tmp_path):
    require("clang", "clang")
    require("wasm-ld", "lld")
    chromium = require("chromium", "chromium")
    found = recorded("four_bar")
    inputs = {name: value[:TICKS] for name, value in found.inputs.items()}
    page = tmp_path / "four_bar.html"
    controls = reference("four_bar").outputs[:TICKS, :1]
    for error, shown in ((0.0, SAME), (1e-3, 2e-3)):
        wrong = controls + error * (np.arange(TICKS)[:, None] == 7)
        found.project.web_page(page, inputs, wrong, outline(inputs["q"]))
        options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}")
        options += ("--virtual-time-budget=2000", "--dump-dom")
        text = run(chromium, *options, page.as_uri(), timeout=60)
        largest = float(re.search(r"over 300 ticks: ([\d.e+-]+)", text)[1])
        print(largest)
        assert abs(largest - error) < SAME
        assert largest < shown
