.PHONY: check format test targets docs imports campaign

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

targets:  ## exports for other processors and systems; a tool that is missing is a failure
	MBCASADI_TARGETS=1 python -m pytest tests/targets

docs:
	python -m mkdocs build --strict

imports:  ## print which package imports which
	python docs/tools/print_imports.py

campaign:  ## 1,000 cases of the quadruped on all cores, 4 minutes on two; goes on where it was
	nice mbcasadi campaign quadruped -c mbcasadi/validation/demo/quadruped.toml \
	  --duration 2 --runs 1000 --range mass=-0.2:0.2 --range friction=-0.5:0.2 --range delay=0:4 \
	  --store campaign.sqlite --report campaign.html
