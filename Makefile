.PHONY: check format test docs imports

check:  ## format, lint, types, import boundaries, spelling
	python -m ruff format --check .
	python -m ruff check .
	python -m mypy
	lint-imports --no-logo
	codespell

format:  ## apply the formatter and the linter's safe fixes
	python -m ruff format .
	python -m ruff check --fix .

test:
	python -m pytest -n 2

docs:
	python -m mkdocs build --strict

imports:  ## print which package imports which
	python docs/tools/print_imports.py
