"""A `System` against MuJoCo, quantity by quantity, at random states."""

from mbcasadi.validation.agreement.agreement import Agreement, AgreementVerdict, judge
from mbcasadi.validation.agreement.compare import agreement_with_mujoco
from mbcasadi.validation.agreement.corpus import CorpusReport, CorpusRow, check_corpus
from mbcasadi.validation.agreement.sensor_gaps import SensorGap, sensor_gaps

__all__ = [
    "Agreement",
    "AgreementVerdict",
    "CorpusReport",
    "CorpusRow",
    "SensorGap",
    "agreement_with_mujoco",
    "check_corpus",
    "judge",
    "sensor_gaps",
]
