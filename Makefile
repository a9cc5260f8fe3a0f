.PHONY: check format quick test all targets docs imports campaign peers

check:  ## format, lint, types, import boundaries, spelling
	python -m ruff format --check .
	python -m ruff check .
	python -m mypy --num-workers 2
	lint-imports --no-logo
	codespell

format:  ## apply the formatter and the linter's safe fixes
	python -m ruff format .
	python -m ruff check --fix .

quick:  ## tests that a change touches, the shortest first, for a minute
	python -m pytest -n 2 --testmon --budget 45

test:
	python -m pytest -n 2

all:  ## the long tests too, and all cases
	python -m pytest -n 2 --all

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

peers:  ## every benchmark, whole, beside peers in environments of their own, which it makes
	test -d peers/acados || python -m venv peers/acados
	peers/acados/bin/pip install -q comma-deps-acados "numpy<2"
	peers/acados/bin/pip install -q --force-reinstall --no-deps "casadi>=3.8"
	test -d peers/tsid || python -m venv peers/tsid
	peers/tsid/bin/pip install -q tsid==1.7.1 pin==3.4.0 \
	  "cmeel-urdfdom<5" "cmeel-tinyxml2<11" "cmeel-eigen<5"
	test -d peers/crocoddyl || python -m venv peers/crocoddyl
	peers/crocoddyl/bin/pip install -q crocoddyl==3.0.1 pin==3.4.0 \
	  "cmeel-urdfdom<5" "cmeel-tinyxml2<11" "cmeel-eigen<5"
	test -d peers/aligator || python -m venv peers/aligator
	peers/aligator/bin/pip install -q libaligator==0.19.1 "cmeel-eigen<5"
	MBCASADI_ALIGATOR_PREFIX=$$(echo $(CURDIR)/peers/aligator/lib/python3*/site-packages/cmeel.prefix) \
	MBCASADI_CROCODDYL_PREFIX=$$(echo $(CURDIR)/peers/crocoddyl/lib/python3*/site-packages/cmeel.prefix) \
	MBCASADI_ACADOS_PYTHON=$(CURDIR)/peers/acados/bin/python \
	MBCASADI_TSID_PREFIX=$$(echo $(CURDIR)/peers/tsid/lib/python3*/site-packages/cmeel.prefix) \
	  python -m bench
