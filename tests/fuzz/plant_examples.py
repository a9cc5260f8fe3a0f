"""Exports, plants and reports for valid calls, each made once."""

import tomllib
from functools import cache
from types import SimpleNamespace

import casadi as ca
import numpy as np
from support.two_rates_problems import two_rates

import mbcasadi as mb
from fuzz import examples as ex
from mbcasadi import codegen, models, plant, validation
from mbcasadi.control import regulators
from mbcasadi.validation import spec


@cache
def world():
    return plant.Plant(ex.FOUR_BAR)


@cache
def sensed():
    return plant.Plant(ex.sensed_model())


@cache
def project():
    """The compiled C of a law without a solver."""
    return mb.export_c(regulators.lqr(ex.linear(), np.ones(6), 1.0), ex.folder() / "lqr")


@cache
def plugin_project():
    """The C of a law with a MuJoCo plugin."""
    return mb.export_c(lqr(), ex.folder() / "plugin", mujoco_plugin=True)


@cache
def supervised_project():
    """The C of a law whose tick has two phases, with its supervision."""
    supervision = codegen.Supervision(inputs={"q": codegen.InputLimits(jump=0.5)})
    return mb.export_c(ex.iteration(), ex.folder() / "supervised", supervision=supervision)


@cache
def two_rates_project():
    """The C of a plan and a law that follows it."""
    return mb.export_two_rates(two_rates(), ex.folder() / "two_rates", mujoco_plugin=True)


@cache
def watched_two_rates():
    """The C of a plan and a law under supervision, and a log of one of its ticks."""
    watched = codegen.Supervision(stale_after=2)
    project = mb.export_two_rates(two_rates(), ex.folder() / "watched", supervision=watched)
    run, log = project.load(log_ticks=2), ex.folder() / "tick.log"
    run.tick(np.zeros(2), np.zeros(2), 0.0)
    run.supervised.save_log(log)
    return {"self": project, "log": log}


@cache
def tick_log():
    """A log of two ticks."""
    running = supervised_project().supervised(log_ticks=2)
    running.step({})
    running.save_log(ex.folder() / "ticks.log")
    return ex.folder() / "ticks.log"


@cache
def iteration_project():
    """The compiled C of a law whose tick has two phases."""
    return mb.export_c(ex.iteration(), ex.folder() / "iteration")


@cache
def lqr():
    return regulators.lqr(ex.linear(), np.ones(6), 1.0)


@cache
def compiled():
    law = lqr().controller
    return validation.CompiledLaw(law, project().load(), project())


@cache
def planner():
    """A planner that hands the state on to the outer law."""
    sizes = {"q": 3, "v": 3, "command": 1, "u": 1, "t": 1, "z": 1}
    given = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    law = lqr().function
    outer = {f"outer_{n}": ca.SX(law.numel_in(n), 1) for n in law.name_in() if n != "z"}
    out = {"ref": ca.SX(1), "mask": ca.SX(1), **outer, "z_next": given["z"]}
    function = ca.Function("plan", [*given.values()], [*out.values()], [*given], [*out])
    return SimpleNamespace(function=function, z0=np.zeros(1), u0=np.zeros(1), every=1, delay=0)


@cache
def reaction():
    """A reaction that switches a mask."""
    z = ca.SX.sym("z")
    return ca.Function("on_off", [z], [z > 0, z + 1], ["z"], ["mask", "z_next"])


@cache
def reaction_project():
    return mb.export_c(reaction(), ex.folder() / "reaction")


@cache
def planner_project():
    return mb.export_c(planner().function, ex.folder() / "planner")


@cache
def predictions():
    one = validation.PredictionStatistics("q", "rad", (0.1,), (0.1,), (0.2,))
    return validation.Predictions({"next": 1}, 1e-3, 2, 0, (one,), (one,), 1, None)


@cache
def tracking():
    return validation.TrackingStatistics("q", "rad", 0.1, 0.2, 0.3, 0.1)


@cache
def standing():
    return plant.Plant(models.path("quadruped"))


@cache
def campaign_in_file():
    """A campaign of one case, and its file."""
    path = ex.folder() / "runs.sqlite"
    path.unlink(missing_ok=True)
    plan = validation.cases([0])
    done = validation.campaign(
        compiled(),
        ex.FOUR_BAR,
        validation.Trial(2e-3),
        plan,
        validation.CampaignOptions(store=path),
    )
    return SimpleNamespace(campaign=done, path=path)


@cache
def report():
    return validation.validate(compiled(), ex.FOUR_BAR, 2e-3)


SPEC = """
type = "inverse_dynamics_qp"
[[task]]
type = "posture"
joints = ["crank"]
[validation]
duration = 0.002
"""


def corpus():
    folder = ex.folder() / "corpus"
    folder.mkdir(exist_ok=True)
    (folder / "still.xml").write_text("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    return folder


def corpus_report():
    row = validation.agreement.CorpusRow("still.xml", "MJCF", "nothing moves")
    return validation.agreement.CorpusReport("models", (row,), {}, 1e-9, 1, {})


@cache
def spec_file():
    file = ex.folder() / "spec.toml"
    file.write_text(SPEC)
    return file


@cache
def own_spec():
    return spec.read_spec(spec_file())


@cache
def sensed_spec():
    sensor = {"name": "crank", "kind": "position", "noise": 1e-3}
    table = {"type": "manifold", "force_noise": 0.02, "sensor": [sensor]}
    return spec.parse_spec(tomllib.loads(SPEC) | {"estimation": table})


@cache
def sensed_log():
    path = ex.folder() / "sensed.csv"
    path.write_text("t,y.crank,u.crank\n0.001,0,0\n0.002,0,0\n")
    return path
