# `make tune` and `make test` do everything on a fresh Debian 12 or newer: install the packages
# that are missing (tools/packages.txt), configure, build, run. The other targets are for work
# on halfwatt itself. CMakePresets.json has the builds.

FUZZ_SECONDS ?= 600

sources = $$(find src include tests bench -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' \
  -o -name '*.cuh')
units = $$(find src tests bench -name '*.cpp')

.PHONY: tune test format lint asan tsan fuzz bench bench-peers device-bundle cuda-all clean

tune:
	tools/install-packages build
	cmake --preset release -DHALFWATT_TESTS=OFF
	cmake --build build/release --target halfwatt
	build/release/bin/halfwatt study --report halfwatt-study.html

test:
	tools/install-packages build test
	cmake --preset release -DHALFWATT_TESTS=ON -DHALFWATT_BENCH=ON
	cmake --build build/release
	tools/run-tests build/release

# The same tests under the sanitizers.
asan:
	tools/install-packages build test
	cmake --preset asan-ubsan
	cmake --build build/asan-ubsan
	tools/run-tests build/asan-ubsan

tsan:
	tools/install-packages build test
	cmake --preset tsan
	cmake --build build/tsan
	tools/run-tests build/tsan

# Every fuzz target for FUZZ_SECONDS; inputs that reach something new stay in build/fuzz/corpus.
fuzz:
	tools/install-packages build fuzz
	cmake --preset fuzz
	cmake --build build/fuzz
	@set -e; for program in build/fuzz/bin/fuzz_*; do \
	  name=$${program##*/fuzz_}; \
	  mkdir -p "build/fuzz/corpus/$$name"; \
	  words=tests/fuzz/$$name.dict; \
	  echo "== $$name, $(FUZZ_SECONDS) seconds"; \
	  "$$program" -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/ $$([ ! -f "$$words" ] || echo "-dict=$$words") \
	    "build/fuzz/corpus/$$name" "tests/fuzz/corpus/$$name"; \
	done

bench:
	tools/install-packages build
	cmake --preset release -DHALFWATT_BENCH=ON
	cmake --build build/release
	@set -e; for program in build/release/bin/bench_*; do "$$program"; done
	@! command -v python3 >/dev/null || python3 bench/progress/step_cost.py

# Beside PyTorch and onnxruntime, which are downloaded into the build folder: gigabytes.
bench-peers:
	tools/install-packages build peers
	cmake --preset release
	cmake --build build/release --target halfwatt
	python3 -m venv build/peers
	build/peers/bin/pip install --quiet -r bench/peers/requirements.txt
	build/peers/bin/python bench/peers/peers.py build/release/bin/halfwatt

# What a machine with a Hopper card needs to run the tests of the label cuda and halfwatt itself.
device-bundle:
	tools/install-packages build test
	cmake -G Ninja -S . -B build/device -DCMAKE_BUILD_TYPE=Release -DHALFWATT_CUDA=ON \
	  -DCMAKE_CUDA_ARCHITECTURES=90a-real
	cmake --build build/device --target halfwatt test_cuda_backend
	tools/device-bundle build/device build/device-bundle.tar.xz halfwatt test_cuda_backend

# The GPU code for every card that the toolkit knows and halfwatt is for.
cuda-all:
	tools/install-packages build test
	cmake -G Ninja -S . -B build/cuda-all -DCMAKE_BUILD_TYPE=Release -DHALFWATT_CUDA=ON \
	  "-DCMAKE_CUDA_ARCHITECTURES=75-real;80;86-real;89-real;90a-real;100-real;120-real"
	cmake --build build/cuda-all --target halfwatt test_cuda_backend

format:
	tools/install-packages lint
	clang-format -i $(sources)

lint:
	tools/install-packages build test lint
	clang-format --dry-run -Werror $(sources)
	cmake --preset dev
	cmake --build build/dev
	echo $(units) | xargs -n 4 -P "$$(nproc)" clang-tidy -p build/dev --quiet

clean:
	rm -rf build
