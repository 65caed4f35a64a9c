# `make` lists the targets. Each sets up what it needs; see docs/_ext/environment.py.

PYTHON ?= python3
PORT ?= 8000

# An environment of your own is checked and never changed: make html VENV=path
ifdef VENV
BIN := $(VENV)/bin
ENVIRONMENT := docs/_ext/environment.py --given $(VENV)
else
BIN := .venv/bin
ENVIRONMENT := docs/_ext/environment.py .venv
endif

# What sphinx-lint reads: hand-written text, not what the build makes of it.
PROSE := docs/index.rst docs/reference tutorials README.md CONTRIBUTING.md AGENTS.md

.PHONY: help environment html serve test lint format bench constraints clean

help:
	@echo "make html [PAGE=assemble/10_collect]  run the tutorials, build build/html"
	@echo "make serve [PORT=8000]                build, then show the site on loopback"
	@echo "make test                             build, then run every check of a pull request"
	@echo "make lint                             format, spelling, markup and page frame"
	@echo "make format                           format the code, mend what can be mended"
	@echo "make bench                            measure; writes benchmarks/results"
	@echo "make constraints                      resolve requirements.txt into constraints.txt"
	@echo "make clean                            remove what the build made"
	@echo "PYTHON=python3.12 chooses the interpreter, VENV=path an environment of yours."

environment:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "make: no '$(PYTHON)' found; pass PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) $(ENVIRONMENT)

html: environment
	@$(BIN)/python docs/_ext/build.py $(if $(PAGE),--page $(PAGE))

serve: html
	@echo "http://127.0.0.1:$(PORT)/ (Ctrl+C ends)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/html $(PORT)

test: html
	@$(BIN)/python -m pytest $(TESTS)

lint: environment
	@status=0; \
	$(BIN)/ruff format --check . || { status=1; echo "run: make format"; }; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/codespell || status=1; \
	$(BIN)/sphinx-lint --enable all --disable line-too-long $(PROSE) || status=1; \
	$(BIN)/yamllint --strict .yamllint .github || status=1; \
	$(BIN)/python docs/_ext/pagelint.py || status=1; \
	exit $$status

format: environment
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

bench: environment
	@$(BIN)/python benchmarks/build.py

constraints:
	@$(PYTHON) docs/_ext/constraints.py

clean:
	@rm -rf build docs/tutorials .pytest_cache .ruff_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
