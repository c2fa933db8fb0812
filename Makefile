# Chunkmill.  `make help` lists the targets.
#
# Knobs (make NAME=VALUE):
#   CC, CFLAGS, LDFLAGS   the compiler and its flags (added to what is needed)
#   BUILD                 where everything is made                 (build)
#   PREFIX, DESTDIR       where `make install` puts things         (/usr/local)
#   SAN                   address or thread: build with sanitizers (none)
#   JOBS                  compilers at once                        (the CPUs)
#   QUICK                 1: shorter `make bench`
#   NODEPS                1: do not look for missing packages first
#   T                     seconds of `make fuzz`                   (600)
#   UNIT_LAYERS           of which layers `make unit` builds tests      (all)
#   V                     1: demo and check show each file that is compiled
#   FULL                  1: `make check-long` tries the most, for hours

CC      ?= cc
BUILD   ?= build
PREFIX  ?= /usr/local
CFLAGS  ?= -O3 -g
SAN     ?=
NODEPS  ?=
JOBS    ?= $(shell nproc)

VERSION := $(shell cat VERSION)

# A line for each file that is made.  Targets that build on the way to something else are silent:
# QUIETLY makes what they need, and what fails still says so.
note = $(if $(QUIET),:,printf '  %-7s %s\n' '$(1)' '$(2)')
QUIETLY = $(MAKE) -s --no-print-directory -j$(JOBS) $(if $(V),,QUIET=1)

# ---- libraries ---------------------------------------------------------------------------------

PKGS   := netcdf hdf5 libzstd blosc libdeflate json-c liblz4 liburing libcurl expat
NOPC   := -lbz2 -laec
HEADERS := libxxhash # nothing of it is linked
# Expanded only when something is compiled, so that `make help` and the first
# `make demo` work before anything is installed.
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS) $(HEADERS))
PKG_LIBS   = -Wl,--as-needed $(shell pkg-config --libs $(PKGS)) $(NOPC)

comma := ,
SAN_FLAGS := $(if $(filter address,$(SAN)),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)$(if $(filter thread,$(SAN)),-fsanitize=thread)

# A product and a sum are rounded one after the other, on machines that can do both in one step, too: results
# are equal on all.
ALL_CFLAGS = -std=c11 -ffp-contract=off -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DCM_VERSION='"$(VERSION)"' \
             -Wall -Wextra -Werror=implicit-function-declaration -Wshadow -Wstrict-prototypes \
             -Wmissing-prototypes -Wpointer-arith \
             -Iinclude -Ilib -pthread $(PKG_CFLAGS) $(SAN_FLAGS) $(CFLAGS)
# Two hundred programs are linked with a sanitizer: lld, where it is installed, takes half of the time.
SAN_LINK  := $(if $(SAN),$(if $(shell command -v ld.lld),-fuse-ld=lld))
ALL_LIBS   = $(PKG_LIBS) -lm -ldl -pthread $(SAN_FLAGS) $(SAN_LINK) $(LDFLAGS)

# ---- sources: a layer is a folder, and a unit test links only what lies below it ---------------

LAYERS := base model codec store plan format gpu watch options engine chunkcalc digest passport load archive convert bench
UNDER_base   := base
UNDER_model  := model base
UNDER_codec  := codec model base
UNDER_store  := store base
UNDER_plan   := plan model base
UNDER_format := format codec store model base
UNDER_gpu    := gpu model base
UNDER_watch  := watch format codec store plan model base
UNDER_options   := options $(UNDER_watch)
UNDER_engine    := engine $(UNDER_watch)
UNDER_chunkcalc := chunkcalc $(UNDER_options)
UNDER_digest    := digest $(UNDER_options)
UNDER_passport  := passport digest $(UNDER_options)
UNDER_load      := load gpu $(UNDER_options)
UNDER_archive   := archive $(UNDER_options)
UNDER_convert   := convert passport digest chunkcalc engine $(UNDER_options)
UNDER_bench     := bench load gpu chunkcalc $(UNDER_options)
# In the order in which programs link them.
ALL_LAYERS := convert bench archive passport digest load gpu chunkcalc engine $(UNDER_options)

layer_src = $(wildcard lib/$(1)/*.c lib/$(1)/*/*.c lib/$(1)/*/*/*.c)
layer_obj = $(patsubst %.c,$(BUILD)/%.o,$(call layer_src,$(1)))
layer_lib = $(BUILD)/lib/libcm_$(1).a

TOOLS    := $(patsubst tools/%/main.c,%,$(wildcard tools/*/main.c))
TOOL_BIN := $(TOOLS:%=$(BUILD)/bin/%)
TOOL_LIB := $(BUILD)/tools/libcommon.a

UNIT_LAYERS ?= *
UNIT_SRC := $(foreach l,$(UNIT_LAYERS),$(wildcard tests/unit/$(l)/test_*.c)) $(if $(filter *,$(UNIT_LAYERS)),$(wildcard tests/gpu/test_*.c))
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)
SUPPORT_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
SUPPORT_BIN := $(patsubst tests/support/bin/%.c,$(BUILD)/tests/bin/%,$(wildcard tests/support/bin/*.c))
BARE_BIN := $(patsubst tests/support/bare/%.c,$(BUILD)/tests/bare/%,$(wildcard tests/support/bare/*.c))
SAMPLE_BIN := $(patsubst scripts/%.c,$(BUILD)/bin/%,$(wildcard scripts/*.c))

.PHONY: all lib tools loader demo docs check check-ci check-long check-asan check-tsan test-programs unit bench scale foresight advice asan tsan \
        fuzz fuzzers fuzz-replay lint format pictures \
        install uninstall bundle wheel portable trial deps clean help
.SECONDARY:
.DEFAULT_GOAL := all

all: tools loader ## build the programs and the loader's library
tools: $(TOOL_BIN)
lib: $(foreach l,$(LAYERS),$(call layer_lib,$(l)))

deps: ## install what is missing from the distribution
	@$(if $(NODEPS),:,scripts/install-deps.sh)

# Anew when the flags here change, too: a compiler cache makes that cheap.
$(BUILD)/%.o: %.c VERSION Makefile
	@mkdir -p $(@D)
	@$(call note,CC,$<)
	@$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# One set of objects for the programs and for the shared library, which shows no names but those
# that the public headers mark.
$(BUILD)/lib/%.o: ALL_CFLAGS += -fPIC -fvisibility=hidden

# A test runs once: optimising it, and all of its debugging information, take longer than they save.
$(BUILD)/tests/%.o: ALL_CFLAGS += -O1 -g1

# Assembled into the object as it stands.
$(BUILD)/lib/gpu/ptx.o: lib/gpu/kernels.ptx

# An archive is made afresh, so that a source that is gone leaves no member behind; q, as
# two folders may have a file of one name.
define layer_rule
$(call layer_lib,$(1)): $(call layer_obj,$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	@$(AR) qcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(eval $(call layer_rule,$(l))))

# An archive too: a program takes what it uses.
$(TOOL_LIB): $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/common/*.c))
	@mkdir -p $(@D)
	@rm -f $@
	@$(AR) qcs $@ $^

define tool_rule
$(BUILD)/bin/$(1): $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/$(1)/*.c)) $(TOOL_LIB) $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l)))
	@mkdir -p $$(@D)
	@$(call note,LINK,$$@)
	@$(CC) -o $$@ $$^ $$(ALL_LIBS)
endef
$(foreach t,$(TOOLS),$(eval $(call tool_rule,$(t))))

# The loader that a training links with.  Its number changes when callers have to be compiled anew.
LOADER_SONAME := libchunkmill_loader.so.1
LOADER_SO  := $(BUILD)/lib/$(LOADER_SONAME)
LOADER_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard lib/load/*.c))
LOADER_LINK = $(CC) -shared -o $@ -Wl,-soname,$(LOADER_SONAME) -Wl,--no-undefined \
              -Wl,--version-script,lib/load/loader.map $(LOADER_OBJ) \
              $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l))) $(ALL_LIBS)
loader: $(LOADER_SO) $(BUILD)/lib/libchunkmill_loader.so $(BUILD)/lib/chunkmill-loader.pc
$(LOADER_SO): $(LOADER_OBJ) $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l))) lib/load/loader.map
	@$(call note,LINK,$@)
	@$(LOADER_LINK)
$(BUILD)/lib/libchunkmill_loader.so: $(LOADER_SO)
	@ln -sf $(LOADER_SONAME) $@
# As it is for this tree; `make install` writes one for where it puts things.
$(BUILD)/lib/chunkmill-loader.pc: scripts/chunkmill-loader.pc.in VERSION
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(CURDIR)|; s|@LIBDIR@|$(abspath $(BUILD)/lib)|; s|@VERSION@|$(VERSION)|' $< >$@

define unit_rule
$(BUILD)/tests/unit/$(1)/test_%: $(BUILD)/tests/unit/$(1)/test_%.o $(SUPPORT_OBJ) $(foreach l,$(UNDER_$(1)),$(call layer_lib,$(l)))
	@$(call note,LINK,$$@)
	@$(CC) -o $$@ $$^ $$(shell pkg-config --libs cmocka) $$(ALL_LIBS)
endef
$(foreach l,$(LAYERS),$(eval $(call unit_rule,$(l))))

# Those of the programs have all of readbench but its main, and the other option tables.
READBENCH_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/main.c,$(wildcard tools/readbench/*.c)))
TABLE_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(filter-out tools/readbench/%,$(wildcard tools/*/table.c)))
$(BUILD)/tests/unit/tools/test_%: $(BUILD)/tests/unit/tools/test_%.o $(READBENCH_OBJ) $(TABLE_OBJ) $(TOOL_LIB) $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l)))
	@$(call note,LINK,$@)
	@$(CC) -o $@ $^ $(shell pkg-config --libs cmocka) $(ALL_LIBS)

$(BUILD)/tests/gpu/test_%: $(BUILD)/tests/gpu/test_%.o $(BUILD)/tests/gpu/kinds.o $(foreach l,$(UNDER_gpu),$(call layer_lib,$(l)))
	@$(call note,LINK,$@)
	@$(CC) -o $@ $^ $(shell pkg-config --libs cmocka) $(ALL_LIBS)

# Fakes of NVIDIA's driver, of four ages, which the tests name by their path.
FAKE_CUDA := $(foreach v,9 10 11 12,$(BUILD)/tests/lib/fake_cuda_$(v).so)
$(BUILD)/tests/lib/fake_cuda_%.so: tests/support/lib/fake_cuda.c tests/support/lib/fake_cuda.h lib/gpu/cuda_abi.h
	@mkdir -p $(@D)
	@$(call note,CC,$< ($*))
	@$(CC) $(ALL_CFLAGS) -DFAKE_CUDA=$* -fPIC -shared -o $@ $< $(SAN_FLAGS)
$(filter $(BUILD)/tests/gpu/% $(BUILD)/tests/unit/gpu/% $(BUILD)/tests/unit/bench/test_device $(BUILD)/tests/unit/load/test_loader_device,$(UNIT_BIN)): | $(FAKE_CUDA)

# That of its management library has the real one's name inside, by which it is found once it is loaded.
$(BUILD)/tests/lib/fake_nvml.so: tests/support/lib/fake_nvml.c
	@mkdir -p $(@D)
	@$(call note,CC,$<)
	@$(CC) $(ALL_CFLAGS) -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 -o $@ $< $(SAN_FLAGS)
$(BUILD)/tests/unit/bench/test_device: | $(BUILD)/tests/lib/fake_nvml.so

# Libraries that make calls of a program fail; they bring no sanitizer of their own.
FAULT_LIB := $(patsubst tests/fault/%.c,$(BUILD)/tests/lib/%.so,$(wildcard tests/fault/*.c))
$(BUILD)/tests/lib/%.so: tests/fault/%.c
	@mkdir -p $(@D)
	@$(call note,CC,$<)
	@$(CC) $(PKG_CFLAGS) -Wall -Wextra -O1 -g -fPIC -shared -fno-builtin -o $@ $< -ldl

unit-%: ## unit-LAYER: build and run the unit tests of one layer
	@$(MAKE) --no-print-directory $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/$*/test_*.c tests/$*/test_*.c))
	@for t in $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/$*/test_*.c tests/$*/test_*.c)); do $$t || exit 1; done
unit: $(UNIT_BIN)
# tests/run.sh runs no fuzzer under ThreadSanitizer: they have one thread.
test-programs: all unit $(if $(filter thread,$(SAN)),,fuzzers) $(SUPPORT_BIN) $(BARE_BIN) $(SAMPLE_BIN) $(FAULT_LIB)

$(BUILD)/tests/bin/%: $(BUILD)/tests/support/bin/%.o $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l)))
	@mkdir -p $(@D)
	@$(call note,LINK,$@)
	@$(CC) -o $@ $^ $(ALL_LIBS)

$(BUILD)/tests/bin/store_conformance: $(BUILD)/tests/support/bin/store_conformance.o $(foreach l,$(UNDER_store),$(call layer_lib,$(l)))
	@mkdir -p $(@D)
	@$(call note,LINK,$@)
	@$(CC) -o $@ $^ $(shell pkg-config --libs cmocka) $(ALL_LIBS)

# This one shows what readbench makes of reports: it is that program, but for its main.
$(BUILD)/tests/bin/readbench_report: $(BUILD)/tests/support/bin/readbench_report.o $(READBENCH_OBJ) $(TOOL_LIB) $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l)))
	@mkdir -p $(@D)
	@$(call note,LINK,$@)
	@$(CC) -o $@ $^ $(ALL_LIBS)

# nc2zarr with joins that are wrong on purpose.
$(BUILD)/tests/bin/nc2zarr_planted: $(BUILD)/tests/support/bin/nc2zarr_planted.o $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/nc2zarr/*.c)) $(TOOL_LIB) $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l)))
	@mkdir -p $(@D)
	@$(call note,LINK,$@)
	@$(CC) -o $@ $^ -Wl,--wrap=cm_run_prepare $(ALL_LIBS)

# A program with some of its functions replaced.
$(BUILD)/tests/bare/readbench: $(BUILD)/tests/support/bare/readbench.o $(BUILD)/tools/readbench/main.o $(READBENCH_OBJ) $(TOOL_LIB) $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l)))
	@mkdir -p $(@D)
	@$(call note,LINK,$@)
	@$(CC) -o $@ $^ -Wl,--wrap=cm_readbench,--wrap=plot_write $(ALL_LIBS)

# Fuzzers: with libFuzzer when FUZZ_ENGINE is set (tests/fuzz/run.sh), otherwise with a main that
# reads committed inputs.  Those of the programs need what the programs are made of.
FUZZ_BIN  := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_PART := $(BUILD)/tests/fuzz/store.o $(if $(FUZZ_ENGINE),,$(BUILD)/tests/fuzz/replay.o) \
             $(READBENCH_OBJ) $(TOOL_LIB)
fuzzers: $(FUZZ_BIN)
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(FUZZ_PART) $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l)))
	@$(call note,LINK,$@)
	@$(CC) -o $@ $^ $(ALL_LIBS)

$(BUILD)/bin/%: $(BUILD)/scripts/%.o
	@mkdir -p $(@D)
	@$(CC) -o $@ $^ $(ALL_LIBS)

demo: ## a sample file made, converted and looked at in two minutes: start here
	@$(if $(NODEPS),:,scripts/install-deps.sh build)
	@echo "building the programs (V=1 shows each file)"
	@$(QUIETLY) all $(SAMPLE_BIN)
	@scripts/demo.sh $(BUILD)

docs: tools ## BUILD/docs: README, docs/ and the programs' help as pages of HTML, for a browser without a network
	@scripts/docs.py $(BUILD) $(BUILD)/docs

pictures: deps ## measure again what the README shows, and renew its pictures; needs Chromium and a quiet machine
	@$(MAKE) --no-print-directory -j$(JOBS) all $(SAMPLE_BIN)
	@scripts/pictures.py $(BUILD)

check: deps ## build and run every test; the last line counts them
	@echo "building the programs and their tests in $(BUILD) (V=1 shows each file)"
	@$(QUIETLY) test-programs
	@tests/run.sh $(BUILD)

check-ci: ## of what takes too long for check, what .ci/run takes
	@tests/check_long.sh $(BUILD) ci-long ci-asan ci-tsan
check-long: deps ## every test in its long version, and the sanitizers' builds
	@$(if $(NODEPS),:,scripts/install-deps.sh long)
	@CHUNKMILL_FULL=$(FULL) tests/check_long.sh $(BUILD)

asan: ## the tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory SAN=address BUILD=$(BUILD)/asan CFLAGS="-O1 -g1" check
check-asan: test-programs
	@tests/run.sh $(BUILD) asan

tsan: ## unit tests of all layers, and the engine's conversions, under ThreadSanitizer
	@$(MAKE) --no-print-directory SAN=thread BUILD=$(BUILD)/tsan CFLAGS="-O1 -g1" check-tsan
check-tsan: test-programs
	@tests/run.sh $(BUILD) tsan

fuzz: ## build the fuzzers (clang) and run all of them for T seconds together
	@tests/fuzz/run.sh $(BUILD) $(or $(T),600)
fuzz-replay: fuzzers ## the fuzzers' committed inputs, without a fuzzer's engine
	@tests/fuzz/replay.sh $(BUILD)

bench: deps ## measure against peers and bare loops; writes build/bench/report.html, report.md and report.json
	@$(MAKE) --no-print-directory -j$(JOBS) all $(SAMPLE_BIN)
	@scripts/bench/run.sh $(BUILD) $(QUICK)

scale: deps ## rate and CPU seconds on one core up to all of them, beside bare loops (QUICK=1: smaller inputs)
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@scripts/bench/run.sh $(BUILD) scale $(QUICK)

foresight: deps ## how well predicted times and recommendations hold (RANDOM_SEED=N: other layouts); some minutes
	@$(MAKE) --no-print-directory -j$(JOBS) all $(SAMPLE_BIN)
	@scripts/bench/foresight.py $(BUILD)/bin $(BUILD)/foresight --rounds $(or $(ROUNDS),3) \
	    $(if $(RANDOM_SEED),--random $(RANDOM_SEED))

advice: deps ## whether readbench names planted causes, and its advice helps; some minutes on a quiet machine
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@scripts/bench/advice.py $(BUILD)/bin $(BUILD)/advice --rounds $(or $(ROUNDS),3)

lint: deps ## includes go down only, no new circle of files, third-party headers in their place, sources formatted
	@$(QUIETLY) all
	@scripts/lint.sh $(BUILD)

format: ## clang-format 14 over every source
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs scripts/clang-format.sh -i

# The same programs, which look for libraries beside themselves.  DT_RPATH, unlike
# DT_RUNPATH, holds for the libraries of libraries too.
RPATH = -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/$(1)lib'
BUNDLED_BIN  := $(TOOLS:%=$(BUILD)/bundle/bin/%)
BUNDLED_TEST := $(patsubst %.c,$(BUILD)/bundle/%,$(wildcard tests/gpu/test_*.c))
define bundle_rule
$(BUILD)/bundle/bin/$(1): $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/$(1)/*.c)) $(TOOL_LIB) $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l)))
	@mkdir -p $$(@D)
	@$(CC) -o $$@ $$^ $$(ALL_LIBS) $$(call RPATH,../)
endef
$(foreach t,$(TOOLS),$(eval $(call bundle_rule,$(t))))
$(BUILD)/bundle/tests/gpu/test_%: $(BUILD)/tests/gpu/test_%.o $(BUILD)/tests/gpu/kinds.o $(foreach l,$(UNDER_gpu),$(call layer_lib,$(l)))
	@mkdir -p $(@D)
	@$(CC) -o $@ $^ $(shell pkg-config --libs cmocka) $(ALL_LIBS) $(call RPATH,../../)
# Bare loops to hold the programs against, for the machine that the bundle is carried to.
BUNDLED_LOOP := $(BUILD)/bundle/scripts/bench/roofline $(BUILD)/bundle/scripts/bench/read_roofline
$(BUILD)/bundle/scripts/bench/%: scripts/bench/%.c scripts/bench/roofline_plan.c scripts/bench/loops.c scripts/bench/loops.h scripts/bench/roofline.h
	@mkdir -p $(@D)
	@$(CC) -std=c11 -D_GNU_SOURCE -O3 -march=x86-64-v3 -pthread -o $@ $< $(if $(filter roofline,$*),scripts/bench/roofline_plan.c) \
		scripts/bench/loops.c $(shell pkg-config --libs libdeflate libzstd) $(call RPATH,../../)
bundle: deps ## BUILD/bundle: programs and the libraries they need, for a machine without them
	@$(MAKE) --no-print-directory -j$(JOBS) $(BUNDLED_BIN) $(BUNDLED_TEST) $(BUNDLED_LOOP) $(FAKE_CUDA)
	@mkdir -p $(BUILD)/bundle/tests/lib && cp $(FAKE_CUDA) $(BUILD)/bundle/tests/lib
	@cp tests/gpu/measure.py $(BUILD)/bundle/tests/gpu
	@scripts/bundle.sh $(BUILD)

# Beside the programs, in a folder of its own: what `make bundle` makes stays what it was.
WHEEL_BIN := $(TOOLS:%=$(BUILD)/wheel/bin/%)
define wheel_rule
$(BUILD)/wheel/bin/$(1): $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/$(1)/*.c)) $(TOOL_LIB) $(foreach l,$(ALL_LAYERS),$(call layer_lib,$(l)))
	@mkdir -p $$(@D)
	@$(CC) -o $$@ $$^ $$(ALL_LIBS) -Wl,-s $$(call RPATH,../)
endef
$(foreach t,$(TOOLS),$(eval $(call wheel_rule,$(t))))
$(BUILD)/wheel/so/$(LOADER_SONAME): $(LOADER_SO)
	@mkdir -p $(@D)
	@$(LOADER_LINK) -Wl,-s -Wl,--disable-new-dtags,-rpath,'$$ORIGIN'
wheel: deps ## BUILD/dist/*.whl: the Python package with programs and libraries, for pip install
	@$(MAKE) --no-print-directory -j$(JOBS) $(WHEEL_BIN) $(BUILD)/wheel/so/$(LOADER_SONAME)
	@scripts/bundle.sh $(BUILD) wheel
	@scripts/wheel.py $(BUILD)/wheel $(BUILD)/dist

# Libraries and compiler that it fetches are kept where `make clean` leaves them.
PORTABLE ?= .portable
ARCHS    ?= x86_64 aarch64
portable: ## BUILD/portable: wheels, tarballs and .debs for any Linux with glibc 2.17, x86-64 and ARM; needs a network
	@JOBS=$(JOBS) scripts/packaging/portable.sh $(PORTABLE) $(BUILD)/portable $(ARCHS)
trial: $(BUILD)/bin/make_sample ## try what `make portable` made in a Debian 11, without root, and the ARM build under qemu
	@$< $(BUILD)/portable/sample.nc >/dev/null
	@scripts/packaging/trial.sh $(PORTABLE) bullseye $(BUILD)/portable $(BUILD)/portable/sample.nc
	@$(if $(filter aarch64,$(ARCHS)),JOBS=$(JOBS) scripts/packaging/emulated.sh $(PORTABLE) aarch64 $(BUILD)/portable $(BUILD)/portable/sample.nc)

install: all ## programs, man pages and completion into PREFIX
	@scripts/install.sh $(BUILD) "$(DESTDIR)$(PREFIX)"
uninstall: ## remove what install put there
	@scripts/install.sh --remove $(BUILD) "$(DESTDIR)$(PREFIX)"

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^#   /  /p' Makefile
	@echo
	@grep -hE '^[a-z%-]+:.*## ' Makefile | sed -E 's/^([^:]+):.*## (.*)/\1|\2/' | \
	    while IFS='|' read -r t d; do printf '  %-12s %s\n' "$$t" "$$d"; done

-include $(shell find $(BUILD) -name '*.d' -not -path '$(BUILD)/asan/*' -not -path '$(BUILD)/tsan/*' 2>/dev/null)
