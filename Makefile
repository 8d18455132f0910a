# gpuraid: one file, no recursion, no lists of files.
#
#   make                     nbdkit-gpuraid-plugin.so, gpuraid and gpuraid-bench,
#                            here
#   make check               unit tests and script tests, layer check
#   make test T=NAME...      only these: ring means test-ring.c, and .sh
#                            or .py of that name
#   make lint                what scripts/check has for style and layers
#   make lock-check          is a library called under the array lock?
#   make unit                only build the unit tests
#   make objects             only compile, all that a program or a test has
#   make man                 the manual pages, in build/man/; the list of them
#                            is in scripts/dev/manual
#   make fuzz                the fuzzers, in build/fuzz/ (scripts/fuzz runs them)
#   make SAN=address,undefined ...   a sanitizer build, in build-address,undefined/
#   make SAN=thread ...
#   make CUDA=no ...         no GPU code even where nvcc exists
#   make PLANT=yes unit      with planted mistakes (common/plant.h), for tests
#                            alone, in build-plant/
#   make clean
#
#   make install             to /usr/local, and the plugin to nbdkit's folder;
#   make uninstall           scripts/install lists the variables for others
#   make dist                gpuraid-VERSION.tar.gz, which needs no git
#
#   make NVCC=/path/to/nvcc
#
# Every file in a folder of the table in docs/architecture.md is
# built, and in the rooms of these.
# tests/ROOM/test-*.c are unit tests (cmocka), linked
# with everything that needs no nbdkit; tests/ROOM/test-*.{sh,py} are run as
# they are; tests/fuzz/fuzz-*.c are fuzzers.  The programs are in $(B)/tests/.

CC      ?= gcc
WERROR  ?= -Werror
SAN     ?=
# With a sanitizer -O2 takes twice as long to compile, and runs no faster; with
# less some warnings are wrong, and the other builds have them all.
OPT     ?= $(if $(SAN),-O1 -g1 -w,-O2 -g)
PLANT   ?=
comma   := ,
NVCC    ?= $(firstword $(shell command -v nvcc 2>/dev/null) \
	$(wildcard /usr/local/cuda/bin/nvcc))
ifeq ($(CUDA),no)
override NVCC :=
endif

B       := build$(if $(SAN),-$(SAN))$(if $(PLANT),-plant)
# Test builds leave their products in their own folder.
OUT     := $(if $(SAN)$(PLANT),$(B),.)
VERSION := $(shell scripts/dev/version)

# With a stack of its own, gcc 13 aligns no variable to more than 32 bytes there
# (gcc bug 110027).
NO_FAKE_STACK := $(if $(findstring address,$(SAN)),$(if $(findstring clang,$(CC)),,\
	--param asan-use-after-return=0))

PKGS     := liburing libisal blkid json-c libnbd
CFLAGS  := $(OPT) -std=gnu11 -fPIC -pthread -I. -D_GNU_SOURCE \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wno-unused-parameter -Wno-missing-field-initializers $(WERROR) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined) \
	$(NO_FAKE_STACK) \
	$(if $(PLANT),-DGPURAID_PLANT) \
	$(shell pkg-config --cflags $(PKGS)) $(EXTRA_CFLAGS)
LDFLAGS := -pthread $(if $(SAN),-fsanitize=$(SAN)) $(EXTRA_LDFLAGS)
# Tests are many programs: the fast linker, where it is there.
FASTLD  := $(if $(shell command -v ld.lld 2>/dev/null),-fuse-ld=lld)
LIBS    := $(shell pkg-config --libs $(PKGS)) -lgf_complete -lm -ldl
# Only for attach/.
CFLAGS_ATTACH := $(shell pkg-config --cflags libnl-genl-3.0)
LIBS_ATTACH := $(shell pkg-config --libs libnl-genl-3.0)

folder   = $(patsubst %.c,$(B)/%.o,$(sort $(wildcard $(1)/*.c)))
# The folders in these; kernels are built in another way.
rooms    = $(filter-out gpu/kernels,$(patsubst %/,%,\
	$(sort $(wildcard $(1:=/*/)))))
core    := $(foreach d,common raidmap gf gpu member array \
	$(call rooms,common raidmap gf gpu member array),$(call folder,$(d)))
# Simulated members are for tests alone.
sim     := $(filter $(B)/member/sim%,$(core))
core    := $(filter-out $(sim),$(core))
control := $(foreach d,control $(call rooms,control),$(call folder,$(d)))
measure := $(call folder,measure)
bench   := $(foreach d,bench $(call rooms,bench bench/seeds),$(call folder,$(d)))
# Kernels are embedded as source, for the run-time compiler, and those of
# gpu/kernels/ as machine code too, if there is an nvcc.
cu       = $(patsubst %.cu,$(B)/%.cu.o,$(sort $(wildcard $(1)/*.cu)))
gpu_cu  := $(call cu,gpu/kernels)
# Those on tensor cores are for some devices, and never compiled there.
tensor  := $(filter $(B)/gpu/kernels/tensor-%,$(gpu_cu))
core    += $(filter-out $(tensor),$(gpu_cu)) $(gpu_cu:.cu.o=.image.o) \
	$(B)/gpu/kernels/specialised.cuh.o
bench   += $(foreach d,bench/seeds $(call rooms,bench/seeds),$(call cu,$(d)))
plugin  := $(call folder,nbdkit-plugin)
old     := $(call folder,old-nbdkit)
attach  := $(foreach d,attach $(call rooms,attach),$(call folder,$(d)))
cli     := $(foreach d,cli $(call rooms,cli),$(call folder,$(d)))
# A .c in a room of tests/ that is no test and no fuzzer is a helper of the tests, except
# those that become libraries and programs of their own.
tests_of = $(sort $(wildcard $(foreach d,tests/* tests/*/*,$(d)/test-*.$(1))))
test_c  := $(call tests_of,c)
fuzz_c  := $(sort $(wildcard tests/fuzz/fuzz-*.c))
not_helpers := $(foreach d,docs fake-cuda lock-check model powerfail preload tools \
	walks,tests/$(d)/%)
helpers := $(patsubst %.c,$(B)/%.o,\
	$(filter-out $(test_c) $(fuzz_c) $(not_helpers),\
	$(sort $(wildcard tests/*.c tests/*/*.c tests/*/*/*.c))))
unit    := $(patsubst %.c,$(B)/tests/%,$(notdir $(test_c)))
tools   := $(patsubst tests/tools/%.c,$(B)/tests/tools/%,\
	$(sort $(wildcard tests/tools/*.c)))
fuzzers := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(fuzz_c))
# Members that lose what was not flushed, served by nbdkit.
volatile := $(call folder,tests/powerfail)

# A driver and a run-time compiler for machines that have none; see
# docs/testing.md.
fake_cuda := build/tests/fake-cuda/libcuda.so.1 \
	build/tests/fake-cuda/old/libcuda.so.1 \
	build/tests/fake-cuda/libnvrtc.so.13

programs := $(if $(plugin),$(OUT)/nbdkit-gpuraid-plugin.so) \
	$(if $(cli),$(OUT)/gpuraid)

all: $(programs) $(OUT)/gpuraid-bench $(tools) $(fake_cuda) \
     $(B)/tests/slow-reads.so $(B)/tests/slow-log.so \
     $(if $(SAN),$(B)/tests/first-malloc.so,$(B)/tests/volatile-plugin.so \
       $(B)/tests/syslog-file.so $(B)/tests/whole-xstate.so)

# nodelete: a thread blocked in a system call may outlive .unload.
$(OUT)/nbdkit-gpuraid-plugin.so: $(plugin) $(old) $(control) $(core) \
		nbdkit-plugin/plugin.map
	$(CC) $(LDFLAGS) -shared -Wl,-z,nodelete \
	  -Wl,--version-script=nbdkit-plugin/plugin.map \
	  -o $@ $(filter %.o,$^) $(LIBS)

$(OUT)/gpuraid: $(cli) $(attach) $(measure) $(control) $(core)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(LIBS_ATTACH)

# For developers, so it is not installed; see bench/scripts/bench.
$(OUT)/gpuraid-bench: $(bench) $(measure) $(core)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libgpuraid.a: $(filter-out %/main.o,$(bench)) $(measure) $(control) $(core) \
		$(old) $(attach)
	rm -f $@ && ar rc $@ $^

# A library, so that a test only gets the helpers that it calls.
$(B)/libtest.a: $(helpers) $(sim)
	rm -f $@ && ar rc $@ $^

$(foreach t,$(test_c:.c=),$(eval $(B)/tests/$(notdir $(t)): $(B)/$(t).o))
$(unit): $(B)/libtest.a $(B)/libgpuraid.a
	$(CC) $(LDFLAGS) $(FASTLD) -o $@ $(filter %.o,$^) $(B)/libtest.a \
	  $(B)/libgpuraid.a $(LIBS) -lcmocka -lJerasure

# Says which functions of array/ it enters; see scripts/dev/walks.
walked  := $(patsubst $(B)/%,$(B)/walks/%,$(filter $(B)/array/%,$(core)))
$(B)/walks/walks: $(B)/tests/walks/walks.o $(walked) $(B)/libtest.a \
		$(B)/libgpuraid.a
	$(CC) $(LDFLAGS) $(FASTLD) -no-pie -o $@ $^ $(LIBS) -lcmocka
# What is inline in the folders below is no part of a walk.
$(walked): CFLAGS += -O0 -finstrument-functions \
	-finstrument-functions-exclude-file-list=common/,gf/,member/,raidmap/
$(B)/walks/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# Says which calls are made under the array lock; see scripts/dev/lock-check.
locked  := $(patsubst $(B)/%,$(B)/lock/%,\
	$(filter $(foreach d,array common gf member raidmap,$(B)/$(d)/%),$(core)))
$(foreach t,$(test_c:.c=),$(eval $(B)/lock/$(notdir $(t)): $(B)/$(t).o))
$(unit:$(B)/tests/%=$(B)/lock/%): $(B)/lock/lock-check.o $(B)/libtest.a \
		$(B)/lock/locked.a $(B)/libgpuraid.a
	$(CC) $(LDFLAGS) $(FASTLD) -no-pie -o $@ $(filter %.o,$^) \
	  $(filter %.a,$^) $(LIBS) -lcmocka -lJerasure
# Each frame can be found, and each call is made where it stands.
lock_flags := -O1 -g1 -w -fno-omit-frame-pointer -fno-optimize-sibling-calls \
	-DLOCK_CHECK
$(locked): $(B)/lock/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -O2 -g,$(CFLAGS)) $(lock_flags) -MMD -MP -c -o $@ $<
$(B)/lock/locked.a: $(locked) scripts/dev/lock-check
	rm -f $@ && ar rc $@ $(locked)
	scripts/dev/lock-check --calls $@ >$(@D)/calls
	objcopy --redefine-syms=$(@D)/calls $@
$(B)/lock/calls.h: $(B)/lock/locked.a
	sed 's/ .*/)/; s/^/CALL (/' $(@D)/calls >$@
$(B)/lock/lock-check.o: tests/lock-check/lock-check.c $(B)/lock/calls.h
	$(CC) $(CFLAGS) -fno-builtin $(lock_flags) \
	  -DCALLS='"$(B)/lock/calls.h"' -c -o $@ $<

# As where the linker puts constants and code into one segment.
$(B)/tests/test-killed-client: FASTLD := -Wl,-z,noseparate-code

# The toolkit's own header is only for this comparison.
cuda_h  := $(if $(NVCC),$(realpath $(dir $(NVCC))../include/cuda.h))
$(B)/tests/gpu/test-cuda-header.o: CFLAGS += $(if $(cuda_h),-DHAVE_CUDA_H \
	$(patsubst %,-isystem %,$(filter-out /usr/include/,$(dir $(cuda_h)))))

$(tools): $(B)/tests/tools/%: $(B)/tests/tools/%.o
	$(CC) $(LDFLAGS) -o $@ $< $(LIBS)

$(B)/tests/volatile-plugin.so: $(volatile)
	$(CC) $(LDFLAGS) -shared -o $@ $^

$(B)/tests/first-malloc.so: tests/preload/first-malloc.c
	@mkdir -p $(@D)
	$(CC) -O2 -fPIC -shared -Wl,-z,initfirst -o $@ $<

$(B)/tests/syslog-file.so $(B)/tests/whole-xstate.so: \
$(B)/tests/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	$(CC) -O2 -fPIC -shared -o $@ $< -ldl

$(B)/tests/slow-reads.so $(B)/tests/slow-log.so: \
$(B)/tests/slow-%.so: tests/preload/slow-%.c
	@mkdir -p $(@D)
	$(CC) -O2 -fPIC -shared -o $@ $< -ldl

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# The files that print the version are compiled again when it changes.
version_o := $(addprefix $(B)/,cli/main.o cli/bench/bench.o bench/requests/requests-machine.o \
	nbdkit-plugin/plugin.o)
$(version_o): CFLAGS += -DGPURAID_VERSION='"$(VERSION)"'
$(version_o): $(B)/version
$(B)/version: $(if $(filter-out $(shell cat $(B)/version 2>/dev/null),\
		$(VERSION)),always)
	@mkdir -p $(@D)
	echo $(VERSION) >$@

$(attach): CFLAGS += $(CFLAGS_ATTACH)

# ---- kernels

# Machine code for those of these devices that the toolkit knows, and PTX for
# newer ones.
ARCHS   ?= $(filter 75 80 86 89 90 100 120,$(patsubst compute_%,%,\
	$(shell $(NVCC) --list-gpu-arch 2>/dev/null)))
gencode  = $(foreach a,$(ARCHS),-gencode=arch=compute_$(a)$(comma)code=sm_$(a)) \
	-gencode=arch=compute_$(firstword $(ARCHS))$(comma)code=compute_$(firstword $(ARCHS))

kernel_h := $(wildcard gpu/text/params.h gpu/kernels/*.cuh)

# Kernels on tensor cores: those of 9.0 from CUDA 12 on, and those of 8.x, which
# 9.0 can run too.
ifneq ($(NVCC),)
have_tensor := $(if $(filter 90,$(ARCHS)),$(shell $(NVCC) --version | \
	awk '/release/ && int (substr ($$5, 1, 2)) >= 12 { print "host device" }')) \
	$(if $(filter 80,$(ARCHS)),sync)
endif
no_tensor := $(filter-out $(have_tensor),host device sync)

$(B)/%.cu.c: %.cu scripts/dev/embed $(kernel_h)
	@mkdir -p $(@D)
	scripts/dev/embed text $< >$@
$(B)/%.cuh.c: %.cuh scripts/dev/embed $(kernel_h)
	@mkdir -p $(@D)
	scripts/dev/embed text $< >$@

build/gpu/kernels/tensor-%.fatbin: gencode = \
	-gencode=arch=compute_90a$(comma)code=sm_90a
build/gpu/kernels/tensor-sync.fatbin: gencode = $(foreach a,$(filter 80 90,\
	$(ARCHS)),-gencode=arch=compute_$(a)$(comma)code=sm_$(a))
$(no_tensor:%=$(B)/gpu/kernels/tensor-%.image.c): scripts/dev/embed
	@mkdir -p $(@D)
	scripts/dev/embed none $(basename $(basename $(@F))) >$@
ifneq ($(NVCC),)
# The same machine code serves every build.
build/%.fatbin: %.cu $(kernel_h)
	@mkdir -p $(@D)
	$(NVCC) -fatbin -Xcudafe --display_error_number -I. $(gencode) -o $@ $<
$(B)/%.image.c: build/%.fatbin scripts/dev/embed
	@mkdir -p $(@D)
	scripts/dev/embed image $< $(basename $(notdir $*)) >$@
else
$(B)/%.image.c: %.cu scripts/dev/embed
	@mkdir -p $(@D)
	scripts/dev/embed none $(notdir $*) >$@
endif

# What tests compare with: fast, and never sanitized.
$(B)/tests/gf-job.o $(B)/tests/gf-reference.o: \
  CFLAGS := $(filter-out -fsanitize=% -fno-sanitize-%,$(CFLAGS)) -O2

$(B)/%.cu.o: $(B)/%.cu.c
	$(CC) $(CFLAGS) -c -o $@ $<
$(B)/%.cuh.o: $(B)/%.cuh.c
	$(CC) $(CFLAGS) -c -o $@ $<
$(B)/%.image.o: $(B)/%.image.c
	$(CC) $(CFLAGS) -c -o $@ $<

# ---- the fakes, for tests: the same in every build, and never sanitized

fake_o   = $(patsubst %,build/tests/fake-cuda/%.o,$(1))
# Sanitizers make the usual way to a thread's variables slow.
fake_cc  = $(CC) $(filter-out -fsanitize=% -fno-sanitize-%,$(CFLAGS)) \
	-ftls-model=initial-exec

build/tests/fake-cuda/%.o: tests/fake-cuda/%.c
	@mkdir -p $(@D)
	$(fake_cc) -MMD -MP -c -o $@ $<
build/tests/fake-cuda/compiler/emulator.o: $(wildcard tests/fake-cuda/compiler/*.h) \
		scripts/dev/embed
	@mkdir -p $(@D)
	scripts/dev/embed text tests/fake-cuda/compiler/emulator.h >$(@:.o=.text.c)
	$(fake_cc) -c -o $@ $(@:.o=.text.c)
build/tests/fake-cuda/libcuda.so.1: \
		$(call fake_o,device context settings counters errors memory copy \
		stream event module scheduler fiber)
	$(CC) -shared -pthread -Wl,-Bsymbolic,-soname,$(@F) -o $@ $^ -ldl
# A driver before CUDA 13.
build/tests/fake-cuda/old/%.o: tests/fake-cuda/%.c
	@mkdir -p $(@D)
	$(fake_cc) -DFAKE_CUDA_OLD -MMD -MP -c -o $@ $<
build/tests/fake-cuda/old/libcuda.so.1: \
		$(call fake_o,device context settings counters errors memory \
		old/copy stream event module scheduler fiber)
	$(CC) -shared -pthread -Wl,-Bsymbolic,-soname,$(@F) -o $@ $^ -ldl
build/tests/fake-cuda/libnvrtc.so.13: \
		$(call fake_o,$(addprefix compiler/,nvrtc compile kernels cache emulator))
	rm -rf $(@D)/cache
	$(CC) -shared -pthread -Wl,-Bsymbolic,-soname,$(@F) -o $@ $^

# ---- fuzzers

# With the address sanitizer nothing is compiled for them alone, and
# tests/fuzz/fuzzing-plain.c runs them.
ifneq ($(findstring address,$(SAN)),)
fuzzers := $(fuzz_c:tests/fuzz/%.c=$(B)/tests/%)
$(B)/libcli.a: $(filter-out %/main.o,$(cli))
	rm -f $@ && ar rc $@ $^
$(fuzzers): $(B)/tests/%: $(B)/tests/fuzz/%.o $(B)/libtest.a $(B)/libcli.a \
		$(B)/libgpuraid.a
	$(CC) $(LDFLAGS) $(FASTLD) -o $@ $^ $(LIBS) -lcmocka
else

# All of what they run is instrumented.  Without clang's libFuzzer (scripts/fuzz
# --which) they are made by $(CC), and tests/fuzz/fuzzing-plain.c runs them.
ifneq ($(filter fuzz build/fuzz/%,$(MAKECMDGOALS)),)
fuzz_by := $(shell scripts/fuzz --which)
endif
fuzz_libfuzzer := $(filter libfuzzer,$(fuzz_by))
fuzz_san := -fsanitize=address,undefined -fno-sanitize-recover=undefined
fuzz_cc = $(if $(fuzz_libfuzzer),clang,$(CC)) $(fuzz_san) \
	$(filter-out -fsanitize=% -fno-sanitize-%,$(CFLAGS))
fuzz_o := $(patsubst %.c,build/fuzz/%.o,\
	$(foreach d,common raidmap gf member array control \
	$(call rooms,common raidmap control gf member array),$(wildcard $(d)/*.c)) \
	cli/server/remote.c cli/show/render.c cli/show/render-counters.c \
	cli/show/text.c cli/show/trouble.c \
	cli/show/metrics-text.c cli/show/watch-frame.c \
	tests/fuzz/mutate.c tests/array/replay/replay-reference.c)

build/fuzz/%.o: %.c build/fuzz/by
	@mkdir -p $(@D)
	$(fuzz_cc) $(if $(fuzz_libfuzzer),-fsanitize=fuzzer-no-link) \
	  -MMD -MP -c -o $@ $<
build/fuzz/libfuzz.a: $(fuzz_o)
	rm -f $@ && ar rc $@ $^
$(fuzzers): build/fuzz/%: build/fuzz/tests/fuzz/%.o \
		build/fuzz/tests/fuzz/fuzzing.o \
		$(if $(fuzz_libfuzzer),,build/fuzz/tests/fuzz/fuzzing-plain.o) \
		build/fuzz/libfuzz.a
	$(fuzz_cc) $(if $(fuzz_libfuzzer),-fsanitize=fuzzer) -o $@ $^ $(LIBS) \
	  -lcmocka
# Rewritten when the other compiler is to be used.
build/fuzz/by: $(if $(filter-out $(shell cat build/fuzz/by 2>/dev/null),\
		$(fuzz_by)),always)
	@mkdir -p $(@D)
	echo $(fuzz_by) >$@
always:
endif

fuzz: $(fuzzers)

unit: $(unit) $(fake_cuda)

objects: $(core) $(sim) $(control) $(measure) $(bench) $(plugin) $(old) $(attach) $(cli) $(helpers) \
	$(test_c:%.c=$(B)/%.o) $(tools:=.o) $(volatile) \
	$(B)/tests/walks/walks.o

named   := $(foreach t,$(T),$(patsubst test-test-%,test-%,test-$(t)))
named_c := $(filter $(named:%=$(B)/tests/%),$(unit))
named_s := $(foreach t,$(named),$(filter %/$(t) %/$(t).sh %/$(t).py,\
	$(call tests_of,sh) $(call tests_of,py)))
test: $(named_c) $(if $(named_s),all)
	@$(if $(named_c)$(named_s),,echo 'make test T=NAME: no such test: "$(T)"' >&2; false)
	B=$(B) OUT=$(OUT) SAN=$(SAN) scripts/run-tests $(named_c) $(named_s)

lint:
	scripts/check style

lock-check:
	scripts/dev/lock-check

# Do files of a folder call each other in a circle?
circles: all
	for d in array attach bench cli common control gf gpu measure member \
	    nbdkit-plugin; do \
	  scripts/dev/include-cycles --most 0 --calls $(B) $$d || exit 1; \
	done

check: all $(unit) circles
	scripts/dev/check-layers
	B=$(B) OUT=$(OUT) SAN=$(SAN) scripts/run-tests $(unit) \
	  $(call tests_of,sh) $(call tests_of,py)

# ---- install

# scripts/dev/manual lists the pages.
man     := $(addprefix $(B)/man/,$(shell scripts/dev/manual --list))

$(man): $(B)/man/%: scripts/dev/manual scripts/dev/md-to-pod $(B)/version \
		$(wildcard docs/*.pod docs/*.md)
	@mkdir -p $(@D)
	scripts/dev/manual $* "$(VERSION)" >$@.new
	mv $@.new $@

programs: $(programs)
man: $(man)

install: programs man
	B=$(B) OUT=$(OUT) scripts/install
uninstall:
	B=$(B) OUT=$(OUT) scripts/install --uninstall

dist:
	scripts/dev/dist $(VERSION)

clean:
	rm -rf build build-* nbdkit-gpuraid-plugin.so gpuraid \
	  gpuraid-bench

.PHONY: all programs man unit objects fuzz check circles lock-check test lint install uninstall \
	dist clean always
.SECONDARY:

-include $(shell find $(B) build/tests/fake-cuda build/fuzz -name '*.d' -type f 2>/dev/null)
