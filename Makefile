# Every target sets up what it needs; nothing has to be installed by hand.
.DEFAULT_GOAL := help
.PHONY: stories-apart stories-town beside-stories test-rules test-github test-attacks test-ordinary test-live fuzz-importer crash histories gate-histories help setup demo test check lint types architecture unit contracts test-tools attacks scenarios test-real serve bench-retrieval bench-generalisation bench-index bench-rebuilds bench-sandbox bench-custody bench-webhook bench-economy bench-overhead lock clean
BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE  # stories start the product often: it should not be compiled each time
PYTEST := $(BIN)/pytest -q -n 2 --dist loadfile
ELSEWHERE = $(shell cut -d' ' -f2 tests/attacks/elsewhere.txt)
OTHERS := $(filter-out tests/__pycache__/ tests/attacks/ tests/scenarios/,$(wildcard tests/*/))

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install everything into .venv, .venv-semgrep and .venv-sandbox (and Debian packages when allowed)
	@scripts/setup.sh

demo: setup ## The whole story on local stand-ins: issue to merged pull request
	@$(BIN)/pullwright demo

serve: setup ## Receive webhooks and work tasks, configured by the environment
	@$(BIN)/pullwright serve

check: lint types architecture ## What is quick to check: lint, types, architecture

lint: setup
	@$(BIN)/ruff check bot tests bench
	@$(BIN)/ruff format --check bot tests bench

types: setup
	@$(BIN)/mypy

architecture: setup
	@$(BIN)/lint-imports --no-cache
	@$(PYTEST) -n 0 tests/architecture

unit: setup
	@$(PYTEST) tests/unit

test-tools: setup
	@scripts/setup.sh tests

contracts: setup test-tools
	@$(PYTEST) tests/contracts

attacks: setup ## The attack corpus
	@$(PYTEST) tests/attacks $(ELSEWHERE)

fuzz-importer: setup ## N result streams with structured damage through the importer: outcomes as JSON
	@$(BIN)/python -m tests.attacks.fuzz $(or $(N),200000) --first $(or $(FIRST),0)

histories: setup
	@$(PYTEST) tests/histories

gate-histories: setup ## N random histories of the gate: seeds and counts as JSON
	@$(BIN)/python -m tests.histories.run $(or $(N),1000) --first $(or $(FIRST),0)

scenarios: setup test-tools
	@$(PYTEST) -m "not real" tests/scenarios

# Side by side: stories, which wait more than they work, are told as they come; the rest prints when it is done. Processes are few,
# because each imports what its tests need, and their tests are shared out by hand: to let one deal them out costs as much as many tests.
test: lint test-tools ## Everything CI runs
	@$(MAKE) --no-print-directory -j 3 stories-apart stories-town beside-stories

stories-apart: setup test-tools
	@$(PYTEST) -vv --dist worksteal -m "not real" --ignore tests/scenarios/test_lightning.py --ignore tests/scenarios/town tests/scenarios

stories-town: setup test-tools
	@$(PYTEST) -vv -n 0 tests/scenarios/town

beside-stories:
	@MAKEFLAGS="$(filter-out -j% --jobserver%,$(MAKEFLAGS))" $(MAKE) --no-print-directory --keep-going --output-sync=target -j 4 test-rules test-github test-attacks types

test-rules: setup test-tools
	@$(BIN)/lint-imports --no-cache
	@$(PYTEST) -n 0 $(filter-out tests/histories/,$(OTHERS)) --ignore-glob 'tests/contracts/test_sandbox_*' --ignore-glob 'tests/contracts/test_github_*'

test-github: setup test-tools
	@$(PYTEST) -n 0 tests/contracts/test_github_* tests/contracts/test_sandbox_*

# With the tests elsewhere that are cases of the attack corpus, which this part reports on.
test-attacks: setup test-tools
	@$(PYTEST) -n 0 -m "not real" tests/attacks tests/histories tests/scenarios/test_lightning.py \
	  $(filter-out tests/histories/% tests/scenarios/%,$(ELSEWHERE))

crash: setup ## N stories (20), the product killed at random requests: strikes and faults as JSON
	@$(BIN)/python -m tests.scenarios.storms $(or $(N),20) --first $(or $(FIRST),0)

test-ordinary: setup ## The sandbox suites as a user without any right (as root: in a mount namespace where that user reaches this checkout)
	@scripts/as-ordinary-user.sh $(BIN)/python -m pytest -q -n 2 --dist loadfile -p no:cacheprovider \
	  tests/unit/sandboxd tests/contracts/test_sandbox_* tests/attacks/test_sandbox.py tests/attacks/test_network.py

test-live: setup ## The sandbox suite against E2B Cloud, with the key in E2B_API_KEY
	@test -n "$$E2B_API_KEY" || { echo "Set E2B_API_KEY to the key of the account that may be used."; exit 2; }
	@PULLWRIGHT_TEST_LIVE=1 $(PYTEST) -n 0 tests/contracts/test_sandbox_conformance.py

test-real: setup ## The pipeline on real open-source projects, all of it
	@$(BIN)/pytest -q tests/scenarios/test_real_projects.py

bench-retrieval: setup ## Files to change, found on public issues (DATA=rows.jsonl SNAPSHOTS=folder of unpacked archives)
	@$(BIN)/python -m bench.retrieval --data $(or $(DATA),../shared/bench/localization-public.jsonl) \
	  --snapshots $(or $(SNAPSHOTS),$(HOME)/.cache/pullwright/snapshots)

bench-generalisation: setup ## What the ranking does on projects its weights were not chosen on, and what each constant is worth (MIRRORS=folder of OWNER+NAME/repo)
	@$(BIN)/python -m bench.generalisation --data $(or $(DATA),../shared/bench/localization-public.jsonl) \
	  --snapshots $(or $(SNAPSHOTS),$(HOME)/.cache/pullwright/snapshots) --keep $(or $(KEEP),$(HOME)/.cache/pullwright/trees) \
	  $(if $(MIRRORS),--mirrors $(MIRRORS)) $(if $(PARTS),--parts $(PARTS))

bench-index: setup ## First index, a commit of 10 files, queries, memory and disk, beside parsing alone and ctags (FILES="1000 10000 50000")
	@$(BIN)/python -m bench.index $(foreach files,$(FILES),--files $(files))

bench-rebuilds: setup ## One context, rebuilt N times in fresh processes: how many distinct texts (DIR=folder QUERY="…" N=100)
	@$(BIN)/python -m bench.rebuilds "$(DIR)" "$(QUERY)" --times $(or $(N),100)

bench-sandbox: setup ## What a sandbox costs, fifty at once, and what is left after five hundred
	@$(BIN)/python -m bench.sandbox

bench-webhook: setup ## Deliveries at a steady rate against pullwright serve (RATE=200 SECONDS=10)
	@$(BIN)/python -m bench.webhook --rate $(or $(RATE),200) --seconds $(or $(SECONDS),10)

bench-custody: setup ## A repository of 6,000 files into a sandbox, into a second one from what was kept, and its change out again
	@$(BIN)/python -m bench.custody

bench-economy: setup ## What the same work costs here and with other agents, and a task of the reference size (MINI=no: without running mini-swe-agent)
	@$(BIN)/python -m bench.economy $(if $(filter no,$(MINI)),--without-mini)

bench-overhead: setup ## The time the bot adds to a task beyond model and commands, by stage (ROUNDS=3 FILES=1000)
	@$(BIN)/python -m bench.overhead --rounds $(or $(ROUNDS),3) --files $(or $(FILES),1000)

lock: setup ## Lock the dependencies anew, with hashes
	@for name in bootstrap runtime dev semgrep sandbox real-tools node mini-swe-agent; do \
	  .venv-setup/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --output-file requirements/$$name.txt requirements/$$name.in; done

clean: ## Remove what setup installed
	@rm -rf .venv .venv-setup .venv-semgrep .venv-sandbox .venv-real .venv-clients .venv-mini .cache .mypy_cache .ruff_cache .hypothesis
