# A thin front for people. Everything is built by CMake and Ninja; presets are in CMakePresets.json.
#   make           build/tandem                 make test      install what is missing, build, all fast tests
#   make run       a local cluster at work      make check     format, lint, room order, banned calls
#   make golden VECTORS=DIR    make e2e [QUICK=1] (a real control plane)    make fuzz SECONDS=60 [FUZZ=json]    make bench [BENCH=json]
#   make image      a container image in build/  make test-pack the image and packages, tested by other programs
#   make dist       source, archives, deb, rpm, hashes in build/dist/           make release [URL=https://...]  all of it
#   make docs       the guide and a reference as a site in build/site/
#   make SAN=address|undefined|thread test (or address,undefined)      make install PREFIX=/usr/local DESTDIR=

PREFIX ?= /usr/local
VECTORS ?= tests/data/vectors
SECONDS ?= 60
SPEED ?= 60
SAN ?=
PRESET := $(if $(SAN),$(SAN),release)
comma := ,
BUILD := $(if $(SAN),build/$(subst $(comma),-,$(SAN)),build)

.PHONY: all run test check golden e2e fuzz bench image docs dist release test-pack install deps clean configure configure-tests deps-build deps-test

all: configure
	@cmake --build $(BUILD) --target tandem

run: deps-build all
	@$(BUILD)/tandem up examples/shop --speed $(SPEED) --kubeconfig $(BUILD)/shop.kubeconfig

test: deps-test configure-tests
	@cmake --build $(BUILD)
	@scripts/run-tests $(BUILD)

golden: deps-test configure-tests
	@cmake --build $(BUILD) --target golden
	@$(BUILD)/tests/golden --skips tests/golden/skips.txt $(VECTORS)

check:
	@scripts/deps build test check
	@scripts/check

fuzz:
	@scripts/deps build test fuzz
	@scripts/fuzz $(SECONDS) $(FUZZ)

bench:
	@scripts/deps build test bench
	@scripts/bench $(BENCH)

e2e: deps-test configure-tests
	@cmake --build $(BUILD)
	@tests/e2e/run $(BUILD)

image:
	@scripts/image

docs: all
	@scripts/docs $(BUILD)/tandem

dist:
	@scripts/dist

release:
	@scripts/release $(URL)

test-pack:
	@tests/pack/run $(ONLY)

install: all
	@cmake --build $(BUILD) --target pages
	@DESTDIR='$(DESTDIR)' cmake --install $(BUILD) --prefix '$(PREFIX)'

deps:
	@scripts/deps

clean:
	rm -rf build

# The program alone needs no package of the tests, so a new build folder begins without them.
configure: $(BUILD)/build.ninja

$(BUILD)/build.ninja: CMakePresets.json
	@scripts/deps --check build || { echo "run 'make deps' to install them" >&2; exit 2; }
	@cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DTANDEM_TESTS=OFF) >/dev/null

configure-tests: configure
	@grep -q '^TANDEM_TESTS:BOOL=ON' $(BUILD)/CMakeCache.txt || cmake --preset $(PRESET) -DTANDEM_TESTS=ON >/dev/null

deps-build:
	@scripts/deps build

deps-test:
	@scripts/deps build test $(if $(findstring undefined,$(SAN)),fuzz)
