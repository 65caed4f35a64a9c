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

# What the newest releases are tried with; it lies in build, so `make clean` removes it.
NEWEST := build/newest

.PHONY: help interpreter environment html serve test lint format reproduce bench \
  bench-learning constraints links newest audit clean

help:
	@echo "make html [PAGE=assemble/10_collect]  run the tutorials, build build/html"
	@echo "make serve [PORT=8000]                build, then show the site on loopback"
	@echo "make test                             build, then run every check of a pull request"
	@echo "make lint                             format, spelling, markup, workflows, page frame"
	@echo "make format                           format the code, mend what can be mended"
	@echo "make reproduce                        build again elsewhere; say what differs"
	@echo "make bench                            measure; writes benchmarks/results"
	@echo "make bench-learning                   train from ten seeds; twenty minutes"
	@echo "make constraints                      resolve requirements.txt into constraints.txt"
	@echo "make links                            follow every link to the outside"
	@echo "make newest [PAGE=…]                  say which claims the newest releases break"
	@echo "make audit                            Lighthouse and valid HTML; needs Node, Java"
	@echo "make clean                            remove what the build made"
	@echo "PYTHON=python3.12 chooses the interpreter, VENV=path an environment of yours."

interpreter:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "make: no '$(PYTHON)' found; pass PYTHON=/path/to/python3.11" >&2; exit 1; }

environment: interpreter
	@$(PYTHON) $(ENVIRONMENT)
	@$(BIN)/python docs/_ext/installed.py

html: environment
	@$(BIN)/python docs/_ext/build.py $(if $(PAGE),--page $(PAGE))

serve: html
	@echo "http://127.0.0.1:$(PORT)/ (Ctrl+C ends)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/html $(PORT)

test: html
	@$(BIN)/python -m pytest $(TESTS)

# pre-commit asks git; a folder in someone else's repository would lint that one.
lint: environment
	@above=$$(git rev-parse --show-cdup 2>&1) && test -z "$$above" || \
	  { echo "make lint: this folder is no git repository of its own," \
	    "which pre-commit needs (git init && git add .)" >&2; exit 1; }
	@VENV=$(VENV) PRE_COMMIT_HOME=build/pre-commit \
	  $(BIN)/python -m pre_commit run --all-files

format: environment
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

# In CI after `make test`, whose site it compares with. Needs git, and faketime in CI.
reproduce: environment
	@$(BIN)/python docs/_ext/reproduce.py

bench: environment
	@$(BIN)/python benchmarks/build.py
	@$(BIN)/python benchmarks/background.py
	@$(BIN)/python benchmarks/layouts.py

bench-learning: environment
	@$(BIN)/python benchmarks/learning.py

constraints:
	@$(PYTHON) docs/_ext/constraints.py

links: environment
	@$(BIN)/python tests/outside_links.py

# With VENV: whatever that environment holds. Without: the newest releases.
ifdef VENV
newest:
	@$(BIN)/python tests/claim_report.py $(PAGE)
else
newest: interpreter
	@$(PYTHON) tests/newest.py --resolve
	@$(PYTHON) docs/_ext/environment.py --root $(NEWEST) $(NEWEST)/venv
	@$(NEWEST)/venv/bin/python tests/claim_report.py $(PAGE)
endif

audit: html
	@$(BIN)/python tests/audit.py

clean:
	@rm -rf build docs/tutorials .pytest_cache .ruff_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
