"""Policies, for example learned ones, that command a control law: one Function, one C."""

from mbcasadi.control.policy.policy_law import PolicyLaw, with_policy

__all__ = ["PolicyLaw", "with_policy"]
