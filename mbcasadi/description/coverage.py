"""The features of a model and their treatment."""

from dataclasses import dataclass
from typing import Literal

from mbcasadi.short_text import summarised

Treatment = Literal["used", "plant only", "refused"]


@summarised
@dataclass(frozen=True)
class CoverageItem:
    """One feature of a model.

    Attributes:
        feature: in MJCF's terms, with the element's name: `joint 'elbow': damping`.
        treatment: "used", "plant only" or "refused".
        member: the only `System` member that is refused; "" where it is not a refusal.
        advice: the consequence, and a remedy.
        also: further members that the same feature would make wrong.
    """

    feature: str
    treatment: Treatment
    member: str = ""
    advice: str = ""
    also: tuple[str, ...] = ()


@summarised
@dataclass(frozen=True)
class Coverage:
    """All features of a model, and the warnings of MuJoCo's compiler."""

    items: tuple[CoverageItem, ...] = ()
    warnings: tuple[str, ...] = ()

    def _summary(self) -> dict[str, object]:
        kinds: tuple[Treatment, ...] = ("used", "plant only", "refused")
        return {**{kind: len(self.by(kind)) for kind in kinds}, "warnings": len(self.warnings)}

    def by(self, treatment: Treatment) -> tuple[CoverageItem, ...]:
        """Return the items with this treatment."""
        known = treatment if isinstance(treatment, str) else ""
        return tuple(item for item in self.items if item.treatment == known)

    def refusal(self, member: str) -> CoverageItem | None:
        """Return the item that makes one `System` member unavailable, or None."""
        refused = self.by("refused") if isinstance(member, str) else ()
        return next((i for i in refused if member in (i.member, *i.also)), None)
