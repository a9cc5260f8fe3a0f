"""A missing optional package is said in one line, with the command that installs it."""

import importlib
import sys

import pytest

from mbcasadi.errors import MissingExtraError
from mbcasadi.extras import optional_module, require_extra


def test_what_is_missing_is_named_with_its_extra(monkeypatch):
    for name in ("jinja2", "pydantic"):
        monkeypatch.setitem(sys.modules, name, None)
    require_extra("tools", "a page", "json", "csv")
    with pytest.raises(MissingExtraError) as caught:
        require_extra("tools", "a page", "json", "jinja2", "pydantic")
    assert str(caught.value) == (
        'a page needs jinja2 and pydantic, which are not installed: pip install "mbcasadi[tools]"'
    )
    with pytest.raises(MissingExtraError, match=r"needs jinja2, which is .*\[tools\]\", or not"):
        optional_module("jinja2.sandbox", "tools", "a page", ", or not at all")
    assert optional_module("json.decoder", "tools", "a page").JSONDecoder


def test_controllers_in_files_say_what_they_need(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("mbcasadi.validation.spec")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(MissingExtraError, match=r'file needs pydantic.*"mbcasadi\[tools\]"'):
        importlib.import_module("mbcasadi.validation.spec")
