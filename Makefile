# Two commands do all the set-up: `make demo` shows a real crash diagnosed, `make test` passes the tests.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
DEMO = $(BIN)/faultlens run --python $(VENV) examples/train.py

.PHONY: demo test bench clean

demo: $(VENV)/.demo
	@echo; echo '$$ $(DEMO)'
	@$(DEMO) || echo "(it died, as it should: exit status $$?)"

test: $(VENV)/.test
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@# Two processes, for two cores: in the second one TensorFlow is loaded, the first one forks without it.
	@$(BIN)/pytest -m loads_tensorflow > $(VENV)/second.log 2>&1 & second=$$!; \
	$(BIN)/pytest; first=$$?; wait $$second; second=$$?; \
	echo 'pytest -m loads_tensorflow'; cat $(VENV)/second.log; exit $$((first || second))

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py

$(VENV)/bin/python:
	tools/system-packages demo
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml setup.py $(wildcard src/faultlens/agent/*.[ch] src/faultlens/guard_alloc/*.[ch] src/faultlens/data/native/*.[ch])
	$(BIN)/pip install --quiet '.[tensorflow]'
	touch $@

# Editable, so that the tests see the sources.
$(VENV)/.test: $(VENV)/bin/python pyproject.toml setup.py $(wildcard src/faultlens/agent/*.[ch] src/faultlens/guard_alloc/*.[ch] src/faultlens/data/native/*.[ch])
	tools/system-packages tests
	$(BIN)/pip install --quiet --editable '.[data,dev,ops,ray,tensorflow]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info src/*.egg-info src/faultlens/agent/*.so src/faultlens/guard_alloc/*.so src/faultlens/data/native/*.so
