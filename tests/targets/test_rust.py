"""A program in Rust calls the controller by bindings that bindgen makes from the header."""

import numpy as np
import pytest
from programs import require, run

from mbcasadi.codegen.targets.replay import write_record

PROGRAM = """
#![allow(non_upper_case_globals, dead_code)]
mod law {{ include!("bindings.rs"); }}
use std::fs;

fn main() {{
    let record: Vec<f64> = fs::read("inputs").unwrap().chunks_exact(8)
        .map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    let mut memory = vec![0.0f64; law::{NAME}_MEMORY_DOUBLES as usize];
    let bytes = law::{NAME}_MEMORY_BYTES as _;
    assert_eq!(unsafe {{ law::{name}_init(memory.as_mut_ptr().cast(), bytes) }}, 0);
    let mut z = unsafe {{ law::{name}_z0 }};
    let (mut u, mut status) = ([0.0; law::{NAME}_U_SIZE as usize], 0.0);
    let (mut flags, mut residual) = (0.0, [0.0; law::{NAME}_RESIDUAL_SIZE as usize]);
    let (nq, nv) = (law::{NAME}_Q_SIZE as usize, law::{NAME}_V_SIZE as usize);
    let (nref, nmask) = (law::{NAME}_REF_SIZE as usize, law::{NAME}_MASK_SIZE as usize);
    let mut out = Vec::new();
    for row in record.chunks_exact(nq + nv + nref + nmask) {{
        let (q, rest) = row.split_at(nq);
        let (v, rest) = rest.split_at(nv);
        let (reference, mask) = rest.split_at(nref);
        let state = z.as_mut_ptr();
        let code = unsafe {{
            law::{name}_step(memory.as_mut_ptr().cast(), q.as_ptr(), v.as_ptr(),
                reference.as_ptr(), mask.as_ptr(), state, u.as_mut_ptr(), state,
                &mut status, &mut flags, residual.as_mut_ptr())
        }};
        assert_eq!(code as f64, status);
        for value in u {{ out.extend_from_slice(&value.to_le_bytes()); }}
    }}
    fs::write("outputs", out).unwrap();
}}
"""


@pytest.mark.parametrize("name", ["four_bar", "quadruped"])
def test_rust_gives_the_recorded_control(name, recorded, reference, tmp_path):
    bindgen = require("bindgen", "bindgen")
    rustc = require("rustc", "rustc")
    project = recorded(name).project
    header, source = project.header, project.source
    run(bindgen, header, "-o", tmp_path / "bindings.rs")
    write_record(project.manifest, tmp_path, recorded(name).inputs)
    (tmp_path / "main.rs").write_text(PROGRAM.format(name=name, NAME=name.upper()))
    run("gcc", "-std=c99", "-O2", "-c", source, "-o", "law.o", cwd=tmp_path)
    run("ar", "rcs", "liblaw.a", "law.o", cwd=tmp_path)
    run(
        rustc, "--edition=2021", "-O", "main.rs", "-L", ".", "-l", "static=law", "-l", "m",
        cwd=tmp_path,
    )  # fmt: skip
    run("./main", cwd=tmp_path)
    expected = reference(name).outputs[:, : project.manifest["outputs"][0]["size"]]
    found = np.fromfile(tmp_path / "outputs").reshape(expected.shape)
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()
