"""Valid calls of code generation, the plant, validation and the models."""

import importlib.resources
from unittest.mock import MagicMock

import mujoco
import numpy as np
from support.two_rates_problems import two_rates

from fuzz import examples as ex
from fuzz import plant_examples as plants
from mbcasadi import environments, plant, validation
from mbcasadi.validation import agreement, spec

SPEC = {
    "type": "inverse_dynamics_qp",
    "task": [{"type": "posture", "joints": ["crank"], "kp": 100.0}],
}


def calls_of_codegen():
    project = plants.project()
    call = {"self": project, "inputs": {}}
    memory = {"memory": project.memory()}
    phases = plants.iteration_project()
    ticks = {"self": phases, "memory": phases.memory(), "inputs": {}}
    running = {"self": plants.supervised_project().supervised(log_ticks=2)}
    both = plants.two_rates_project()
    measured = {"self": both.load(), "q": np.zeros(2), "v": np.zeros(2), "t": 0.0}
    home = "codegen."
    return {
        home + "export_two_rates": {
            "mpc": two_rates(),
            "folder": ex.folder() / "rates",
            "overwrite": True,
        },
        home + "open_two_rates": {"folder": both.folder},
        home + "TwoRatesProject.build": {"self": both},
        home + "TwoRatesProject.build_mujoco_plugin": {"self": both, "mujoco": mujoco.__path__[0]},
        home + "TwoRatesProject.load": {"self": both},
        home + "TwoRatesProject.run_example": {"self": both},
        home + "TwoRatesProject.replay": plants.watched_two_rates(),
        home + "TwoRatesController.plan": measured | {"command": np.zeros(1)},
        home + "TwoRatesController.tick": measured,
        home + "batch": {"function": ex.sine()},
        home + "BatchBuild": {"lanes": False},
        home + "export_c": {
            "controller": ex.sine(),
            "folder": ex.folder() / "sine",
            "overwrite": True,
        },
        home + "cache.clear": {},
        home + "cache.disabled": {},
        home + "cache.folder": {},
        home + "cache.info": {},
        home + "open_project": {"folder": project.folder},
        home + "CProject.build": {"self": project},
        home + "CProject.build_mujoco_plugin": {
            "self": plants.plugin_project(),
            "mujoco": mujoco.__path__[0],
        },
        home + "CProject.size": {"self": project},
        home + "CProject.supervised": {"self": plants.supervised_project(), "log_ticks": 2},
        home + "CProject.replay": {"self": plants.supervised_project(), "log": plants.tick_log()},
        home + "Supervised.step": running | {"inputs": {}},
        home + "Supervised.prepare": running | {"inputs": {}},
        home + "Supervised.feedback": running | {"inputs": {}},
        home + "Supervised.start": running | {"u": running["self"].control},
        home + "Supervised.save_log": running | {"path": ex.folder() / "log"},
        home + "Supervision": {"stale_after": 3},
        home + "CProject.load": {"self": project},
        home + "CProject.build_example": {"self": project},
        home + "CProject.step": call | memory,
        home + "CProject.prepare": ticks,
        home + "CProject.feedback": ticks,
        home + "CProject.time": call | {"repeats": 1},
        home + "CProject.worst_case": call | {"ticks": 2},
        home + "CProject.footprint": {"self": project, "target": "gcc"},
        home + "CProject.wasm": {"self": project, "folder": ex.folder() / "wasm"},
        home + "CProject.web_page": call
        | {"path": ex.folder() / "page.html", "controls": np.zeros((1, 1))},
        home + "CProject.cortex_m7": {"self": project, "folder": ex.folder() / "cortex_m7"},
    }


def calls_of_environments():
    trial, actions = validation.Trial(0.02, period=0.01), {"u": (-1.0, 1.0)}
    known = {"model": ex.FOUR_BAR, "controller": None, "trial": trial, "actions": actions}
    own = {"self": environments.ControlledEnv(**known)}
    spec = importlib.resources.files("mbcasadi.validation.demo") / "four_bar.toml"
    return {
        "environments.ControlledEnv": known,
        "environments.ControlledEnv.reset": own | {"seed": 0},
        "environments.ControlledEnv.step": own | {"action": [0.5]},
        "environments.make_controlled": {
            "model": "four_bar",
            "spec": str(spec),
            "actions": {"posture.q": (-0.1, 0.1)},
        },
    }


def calls_of_plants():
    world, home = plants.world(), "plant."
    own = {"self": world}
    return {
        home + "Plant": {"source": ex.FOUR_BAR},
        home + "Ground": {},
        home + "with_ground": {"source": ex.FOUR_BAR, "ground": plant.Ground()},
        home + "FreeObject": {
            "shape": "ball",
            "size": 0.1,
            "mass": 1.0,
            "position": (0.0, 0.0, 1.0),
        },
        home + "with_object": {
            "source": ex.FOUR_BAR,
            "thing": plant.FreeObject("ball", 0.1, 1.0, (0.0, 0.0, 1.0)),
        },
        home + "Plant.keyframe": {"self": plants.standing(), "name": "stand"},
        home + "Plant.integrate": own | {"q": ex.four_bar().tree.q0, "dv": np.zeros(3)},
        home + "Plant.reset": own,
        home + "Plant.apply_force": own | {"force": np.zeros(3)},
        home + "Plant.apply_body_forces": own | {"forces": {"crank": np.zeros(3)}},
        home + "Plant.move_mocap": own | {"poses": {}},
        home + "Plant.switch_equalities": own | {"active": {"pin": True}},
        home + "Plant.equality_forces": own | {"name": "pin"},
        home + "Plant.step": own | {"u": np.zeros(1)},
        home + "Plant.measure": own | {"u": np.zeros(1)},
        home + "Plant.contact_forces": {"self": plants.standing(), "names": ["FL"]},
        home + "Plant.contact_forces_at": {
            "self": plants.standing(),
            "places": {"foot": ("FL_foot", (0.0, 0.0, 0.0))},
        },
        home + "Plant.force_between": {"self": plants.standing(), "first": "floor", "second": "FL"},
        home + "Plant.frame_position": own | {"name": "tracer"},
        home + "Plant.frame_rotation": own | {"name": "tracer"},
        home + "Plant.difference": own | {"q0": ex.four_bar().tree.q0, "q1": np.zeros(3)},
        home + "Plant.mean_sensor": {"self": plants.sensed(), "name": "felt"},
        home + "Plant.sensor": {"self": plants.sensed(), "name": "felt"},
        home + "external_wrenches": {"model": ex.sensed_model(), "data": ex.sensed_data()},
        home + "solver_readings": {"model": ex.sensed_model(), "data": ex.sensed_data()},
        home + "applied_wrenches": {"model": ex.sensed_model(), "data": ex.sensed_data()},
        home + "compile_model": {"source": ex.FOUR_BAR},
        home + "draw_frames": {"model": ex.model(), "q": np.zeros((1, 3)), "width": 8, "height": 8},
        home + "browse": {"model": ex.FOUR_BAR, "t": np.zeros(1), "q": np.zeros((1, 3))},
        home + "BrowserView.show": {"self": plant.BrowserView(MagicMock()), "t": 0.0},
        home + "play": {"model": ex.FOUR_BAR, "t": np.zeros(1), "q": np.zeros((1, 3))},
        home + "save_video": {
            "model": ex.FOUR_BAR,
            "t": np.zeros(1),
            "q": np.zeros((1, 3)),
            "path": ex.folder() / "run.gif",
            "options": plant.VideoOptions(width=8, height=8),
        },
        home + "VideoOptions": {"width": 8},
        home + "make_rigid": {"model": ex.model()},
        home + "perturb": {"model": ex.model(), "errors": {"mass": 0.0}},
        home + "soften": {"model": ex.model(), "time_constant": 0.02, "impedance": 0.9},
    }


def calls_of_validation():
    law, home = plants.compiled(), "validation."
    given = {"controller": law, "model": ex.FOUR_BAR}
    trial = given | {"trial": validation.Trial(2e-3)}
    report, library = plants.report(), plants.project().build().path
    done = plants.campaign_in_file()
    own, plan = {"self": done.campaign}, validation.cases([0])
    sensing = validation.Sensing(ex.state_filter())
    return {
        home + "Case": {"seed": 0},
        home + "Campaign": {"outcomes": done.campaign.outcomes, "planned": 1},
        home + "Campaign.save": own | {"path": ex.folder() / "campaign.json"},
        home + "Campaign.sensitivity": own,
        home + "Campaign.to_html": own,
        home + "Campaign.worst": own,
        home + "Outcome.metric": {"self": done.campaign.outcomes[0], "name": "tracking.max"},
        home + "compare_precision": {"controller": ex.sine(), "states": 2},
        home + "case_report": trial | {"cases": plan, "number": 0},
        home + "margin": trial | {"over": "mass", "largest": 0.1, "steps": 1},
        home + "open_campaign": {"path": done.path},
        home + "sampled_cases": {"ranges": {"mass": (0.0, 0.1)}, "count": 2},
        home + "validate": given | {"duration": 2e-3},
        home + "Trial": {"duration": 2e-3},
        home + "CampaignOptions": {"jobs": 1, "time_limit": 9.0},
        home + "campaign": trial | {"cases": plan},
        home + "cases": {"seeds": [0]},
        home + "compile_controller": {"controller": law},
        home + "CompiledLaw.start": {"self": law, "plant": plants.world()},
        home + "CompiledLaw.times": {"self": law, "inputs": {"q": np.zeros((1, 3))}},
        home + "Policy": {"observe": np.sum, "policy": np.sum},
        home + "SharedLibrary": {"path": library, "symbol": "lqr_init"},
        home + "shared_library": {"path": library, "symbol": "lqr_init"},
        home + "outer_law": {
            "controller": law, "planner": plants.planner(), "command": np.zeros(1),
        },
        home + "OuterLaw": {
            "law": law, "planner": plants.planner(), "project": plants.planner_project(),
            "command": np.zeros(1),
        },
        home + "reaction": {"function": plants.reaction(), "z0": np.zeros(1)},
        home + "Reaction": {"project": plants.reaction_project(), "z0": np.zeros(1)},
        home + "Sensing": {"estimator": sensing.estimator},
        home + "Sensing.errors_of": {"self": sensing, "sensor": sensing.estimator.sensors[0]},
        home + "Sensing.of_case": {"self": sensing, "seed": 1, "noise": 2.0},
        home + "SensorErrors": {},
        home + "SensorErrors.scaled": {
            "self": validation.SensorErrors(), "factor": 2.0, "expected": 1e-3,
        },
        home + "Predictions.share": {"self": plants.predictions(), "lag": 0},
        home + "TrackingStatistics.share": {"self": plants.tracking(), "value": 0.1},
        home + "Criteria": {},
        home + "Push": {"body": "crank", "force": np.ones(3), "start": 0.0, "stop": 0.1},
        home + "ReportOptions": {},
        home + "ScenarioOptions": {},
        home + "Report": {"runs": report.runs},
        home + "side_by_side": {"reports": {"a": report, "b": report}},
        home + "SideBySide": {"reports": {"a": report, "b": report}},
        home + "SideBySide.save": {
            "self": validation.side_by_side({"a": report, "b": report}),
            "path": ex.folder() / "both.json",
        },
        home + "Report.save": {"self": report, "path": ex.folder() / "report.json"},
        home + "Recording.later": {"self": report.runs[0].recording, "first": 1},
        home + "Recording.before": {"self": report.runs[0].recording, "end": 1},
        home + "Recording.to_mcap": {
            "self": report.runs[0].recording,
            "path": ex.folder() / "run.mcap",
        },
        home + "save_recording": {
            "recording": report.runs[0].recording, "path": ex.folder() / "run.npz",
        },
        home + "load_recording": {
            "path": validation.save_recording(
                report.runs[0].recording, ex.folder() / "loaded.npz"
            ),
        },
        home + "Report.video": {
            "self": report, "path": ex.folder() / "run.gif",
            "options": plant.VideoOptions(width=8, height=8, fps=1.0),
        },
        home + "Run.video": {
            "self": report.runs[0], "path": ex.folder() / "own.gif",
            "options": plant.VideoOptions(width=8, height=8, fps=1.0),
        },
        home + "Report.browse": {"self": report},
        home + "Run.browse": {"self": report.runs[0]},
        home + "Run.metric": {"self": report.runs[0], "name": "effort.rms"},
        home + "compare": {"first": ex.four_bar(), "second": ex.FOUR_BAR, "states": 1},
        home + "agreement.agreement_with_mujoco": {
            "system": ex.four_bar(), "model": ex.model(), "states": 1,
        },
        home + "agreement.sensor_gaps": {
            "system": ex.sensed(), "model": ex.sensed_model(), "states": 1,
        },
        home + "agreement.check_corpus": {
            "folder": plants.corpus(), "jobs": 1, "states": 1, "frames": 0,
        },
        home + "agreement.CorpusReport.by": {
            "self": plants.corpus_report(), "outcomes": ("exact",),
        },
        home + "agreement.judge": {"entries": [agreement.Agreement("M", 0.0, 0, "kg")]},
        home + "spec.read_spec": {"path": plants.spec_file()},
        home + "spec.parse_spec": {"tables": SPEC},
        home + "spec.build_experiment": {"spec": plants.own_spec(), "model": ex.FOUR_BAR},
        home + "spec.build_exported": {"spec": plants.own_spec(), "model": ex.FOUR_BAR},
        home + "spec.experiment_for_system": {
            "spec": plants.own_spec(), "system": ex.four_bar(), "q0": ex.four_bar().tree.q0,
        },
        home + "spec.run_spec": {"spec": plants.own_spec(), "model": ex.FOUR_BAR},
        home + "spec.estimate_log_of_spec": {
            "spec": plants.sensed_spec(), "model": ex.FOUR_BAR, "log": plants.sensed_log(),
        },
        home + "spec.cases_of_spec": {"spec": plants.own_spec(), "runs": 1},
        home + "spec.run_campaign": {
            "spec": plants.own_spec(), "model": ex.FOUR_BAR, "plan": plan,
        },
        home + "spec.run_case": {
            "spec": plants.own_spec(), "model": ex.FOUR_BAR, "plan": plan, "number": 0,
        },
        home + "spec.film_worst": {
            "spec": plants.own_spec(), "model": ex.FOUR_BAR, "plan": plan,
            "result": done.campaign, "count": 0, "folder": ex.folder(),
        },
        home + "spec.run_margin": {
            "spec": plants.own_spec(), "model": ex.FOUR_BAR, "over": "mass", "largest": 0.1,
            "steps": 1, "jobs": 1,
        },
        home + "spec.example_inputs": {
            "experiment": spec.build_experiment(plants.own_spec(), ex.FOUR_BAR),
        },
        home + "spec.Experiment.complete": {
            "self": spec.build_experiment(plants.own_spec(), ex.FOUR_BAR),
            "trial": plants.own_spec().trial,
        },
        home + "spec.json_schema": {},
        home + "spec.MotionOptions": {"speed": 0.3},
        home + "spec.propose_spec": {"model": ex.FOUR_BAR},
        home + "spec.Spec.with_trial": {"self": plants.own_spec()},
        home + "spec.Spec.model": {"self": plants.own_spec(), "path": ex.FOUR_BAR},
    }  # fmt: skip


def calls_of_data():
    return {
        "models.find": {"source": "four_bar"},
        "models.names": {},
        "models.path": {"name": "four_bar"},
        "plots.curves_of": {
            "runs": {"a": {"t": [0.0, 1.0], "x": [0.0, 1.0]}},
            "titles": {"x, m": "x"},
        },
        "plots.save_figure": {
            "path": ex.folder() / "curves.svg",
            "subplots": {"x, m": {"a": ([0.0, 1.0], [0.0, 1.0])}},
            "log": ["x, m"],
            "dashed": ["a"],
            "limits": {"x, m": (0.1, None)},
            "marks": [0.5],
        },
        "description.Coverage.by": {"self": ex.four_bar().coverage, "treatment": "used"},
        "description.Coverage.refusal": {
            "self": ex.four_bar().coverage,
            "member": "bias_force",
        },
    }
