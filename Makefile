# SPDX-License-Identifier: BSD-2-Clause
#
# The entry point for people. CMake and Ninja do the work (CMakeLists.txt, scripts/build); this file
# only names the tasks.

PREFIX ?= /usr/local
SEEDS ?= 1000
FROM ?= 1
SEED ?=
FUZZ_SECONDS ?= 60
CASES ?=
SCRIPTS ?=

.PHONY: all demo test test-all clients bench sim mutants fuzz tsan interop drill install format clean help

all:
	@scripts/build release

demo:
	@scripts/bootstrap --demo
	@scripts/build release --quiet verbatim ibverbs rdmacm verbatim-preload
	@scripts/demo

test:
	@scripts/bootstrap || { echo "0 passed, 1 failed"; exit 1; }
	@tests/run

test-all:
	@scripts/bootstrap || { echo "0 passed, 1 failed"; exit 1; }
	@tests/run --all

clients:
	@scripts/bootstrap --clients
	@scripts/build release --quiet verbatim ibverbs rdmacm verbatim-preload
	@tests/clients/run
	@VB_BUILD_RELEASE=build tests/clients/languages.sh
	@status=0; for client in diags pipeline fio rpma dapl gloo iser ceph migration; do \
		VB_CLIENTS=1 VB_BUILD_RELEASE=build tests/clients/$$client.sh || [ $$? = 77 ] || status=1; \
	done; exit $$status

bench:
	@scripts/bootstrap --bench
	@scripts/build release --quiet verbatim ibverbs rdmacm verbatim-preload interop-agent benches
	@build/bench/engine
	@echo
	@bench/wire
	@echo
	@bench/kernel
	@echo
	@bench/clients
	@echo
	@bench/tails --write
	@echo
	@bench/local --write

sim:
	@scripts/build release --quiet verbatim
	@build/verbatim sim $(if $(SEED),--seed $(SEED),--from $(FROM) --seeds $(SEEDS))

mutants:
	@if [ -x tests/mutants/run ]; then tests/mutants/run all; else echo "there are no mutants yet"; fi

fuzz:
	@scripts/build fuzz --quiet
	@tests/fuzz/run $(FUZZ_SECONDS)

tsan:
	@tests/run tsan/

interop:
	@scripts/bootstrap
	@scripts/build release --quiet
	@$(if $(CASES),tests/interop/run $(CASES),tests/interop/all)

drill:
	@scripts/bootstrap
	@scripts/build release --quiet
	@build/tests/drill/engine $(SCRIPTS)
	@tests/drill/run ours $(SCRIPTS)
	@tests/drill/run kernel $(SCRIPTS)

install:
	@scripts/build release --quiet verbatim ibverbs rdmacm verbatim-preload
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

format:
	@scripts/format

clean:
	rm -rf build

help:
	@echo "make                  build (release, gcc) into build/"
	@echo "make demo             install what is missing, build, show the main job"
	@echo "make test             install what is missing, build, run the tests (what CI runs)"
	@echo "make test-all         the same with all seeds, mutants and cases; hours"
	@echo "make clients          run every program of tests/clients/list and compare with the list"
	@echo "make bench            install what is missing, build, measure speed and memory"
	@echo "make sim              simulated worlds: SEEDS=1000 FROM=1, or replay one with SEED=7"
	@echo "make mutants          plant every known fault and see that the tests catch it"
	@echo "make fuzz             run each fuzz target for FUZZ_SECONDS=60"
	@echo "make tsan             the thread tests under the thread sanitizer"
	@echo "make interop          against the kernel's Soft-RoCE in a guest, and the drill; CASES= chooses by name"
	@echo "make drill            packets by script against engine, process and kernel; SCRIPTS= chooses by name"
	@echo "make install          into PREFIX=/usr/local, below DESTDIR="
	@echo "make format           format all C files"
	@echo "make clean            remove build/"
