# Two commands:
#   make prove   install what is missing, build, and prove that the tiny model gives the same bits under every condition
#   make test    install what is missing, build, and run every test
# Others: make forensics (the forensics tool alone), make cuda, make gpu-test, make gpu-bench, make asan, make fuzz, make lint.
# JOBS=N limits the build.

JOBS ?= $(shell nproc)
BUILD = cmake --preset $(1) $(if $(VERBOSE),,> build/configure-$(1).log) && ninja -C build/$(1) -j $(JOBS) $(2)

.PHONY: prove test build deps forensics cuda gpu-test gpu-bench asan fuzz lint format clean

build: deps
	@mkdir -p build
	@$(call BUILD,cpu)

# Only the program: the tests are three quarters of the build.
prove: deps
	@mkdir -p build
	@cmake --preset cpu > build/configure-cpu.log && ninja -C build/cpu -j $(JOBS) samebits
	@build/cpu/samebits prove models/tiny-v32 --report build/prove.html

test: build
	@cd build/cpu && ctest -j $(JOBS) --output-on-failure

deps:
	@tools/install_deps.sh

forensics: deps
	@mkdir -p build
	@$(call BUILD,forensics)
	@cd build/forensics && ctest -j $(JOBS) --output-on-failure

cuda: deps
	@mkdir -p build
	@$(call BUILD,cuda)

gpu-test:
	@tests/gpu/run.sh

gpu-bench:
	@bench/gpu/run.sh

asan: deps
	@mkdir -p build
	@$(call BUILD,asan,asan_tests)
	@cd build/asan && ctest -j $(JOBS) --output-on-failure -L asan

fuzz: deps
	@mkdir -p build
	@$(call BUILD,fuzz)
	@tests/fuzz/run.sh build/fuzz $(or $(FUZZ_SECONDS),5)

lint: deps
	@tools/check_layers.py
	@tools/check_names.py
	@tools/check_format.sh
	@tools/check_tidy.sh

format:
	@git ls-files 'src/*.cc' 'src/*.h' 'tests/*.cc' 'tests/*.h' 'src/*.cu' 'src/*.cuh' 'bench/*.cc' | xargs clang-format-19 -i

clean:
	rm -rf build
