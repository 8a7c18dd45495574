# stat-accel: one Makefile, variants side by side.  `make help` lists the targets.

VARIANT ?= release
B       := $(if $(filter release,$(VARIANT)),build,build/$(VARIANT))
CC      ?= cc
# The only place of the version: `make dist`, the packages and the programs take it from here.
VERSION := 0.1.0

# Where `make install` puts things, below $(DESTDIR); the names are those of the GNU coding standards.
prefix      ?= /usr/local
exec_prefix ?= $(prefix)
bindir      ?= $(exec_prefix)/bin
datarootdir ?= $(prefix)/share
datadir     ?= $(datarootdir)
mandir      ?= $(datarootdir)/man
docdir      ?= $(datarootdir)/doc/stat-accel
bashcompdir ?= $(datadir)/bash-completion/completions
zshcompdir  ?= $(datadir)/zsh/site-functions
fishcompdir ?= $(datadir)/fish/vendor_completions.d
# `make install-service`; the units name /etc/stat-accel, so sysconfdir is not below the prefix.
sysconfdir  ?= /etc
unitdir     ?= $(prefix)/lib/systemd/system
tmpfilesdir ?= $(prefix)/lib/tmpfiles.d

# One short line per file; V=1 shows the commands.
say      = $(if $(V),,@printf '  %-5s %s\n' $1 $2;)
JOBS    := $(shell nproc 2>/dev/null || echo 2)
TEST_JOBS := $(shell expr 2 \* $(JOBS)) # tests wait for two thirds of their time

PKGS    := glib-2.0 libpcre2-8
URING   := $(shell pkg-config --exists liburing 2>/dev/null && echo yes) # without it: no io-uring among the backends
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	   -Wno-unused-parameter -Wno-missing-field-initializers -Werror=implicit-function-declaration
CPPFLAGS_V = -D_GNU_SOURCE -DSTAT_ACCEL_VERSION='"$(VERSION)"' -DSTAT_ACCEL_BINDIR='"$(bindir)"' $(if $(URING),-DHAVE_LIBURING) $(CPPFLAGS)
# CPPFLAGS, CFLAGS and LDFLAGS come from the caller: dpkg-buildflags has a level of its own.
FORTIFY    = $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-D_FORTIFY_SOURCE=2)
CFLAGS_release = -O2 -g $(FORTIFY) -fstack-protector-strong -fno-plt
CFLAGS_asan    = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan    = -O1 -g -fsanitize=thread
CFLAGS_V       = $(CFLAGS_$(VARIANT)) -fPIE -pthread $(CFLAGS)
LDFLAGS_V      = $(CFLAGS_$(VARIANT)) -pie -pthread -Wl,-z,relro,-z,now,--as-needed $(LDFLAGS)

# pkg-config is asked when a recipe runs, not when the file is read, so that
# `make help` and `make run` work before anything is installed.
PKG_CFLAGS   = $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS     = $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm
URING_LIBS   = $(if $(URING),$(shell pkg-config --libs liburing))
SECCOMP_LIBS = $(shell pkg-config --libs libseccomp 2>/dev/null)
TLS_LIBS     = $(shell pkg-config --libs libssl libcrypto 2>/dev/null)
HTTP2_LIBS   = $(shell pkg-config --libs libnghttp2 2>/dev/null)
FUSE_FLAGS   = $(shell pkg-config --cflags --libs fuse3 2>/dev/null)

# ---------------------------------------------------------------- layers
# What a layer may link: itself and those below.
LAYERS           := base wire io files proxy-core server fcgi-stat-accel walk accel-warm accel-pool accel-load
below_base       := base
below_wire       := wire base
below_io         := io wire base
below_files      := files io wire base
below_proxy-core := proxy-core io wire base
below_server     := server proxy-core files io wire base
below_fcgi-stat-accel := fcgi-stat-accel files io wire base
below_walk       := walk files io wire base
below_accel-warm := accel-warm walk files io wire base
below_accel-pool := accel-pool walk files io wire base
below_accel-load := accel-load io wire base

left_out := %/main.c $(if $(URING),,%/uring.c %/uring_setup.c)
src_of = $(filter-out $(left_out),$(sort $(wildcard $1/*.c $1/*/*.c $1/*/*/*.c)))
obj_of = $(patsubst %.c,$B/obj/%.o,$(call src_of,$1))
lib_of = $(patsubst %,$B/lib/%.a,$(below_$1))

# Without the headers of FUSE there is no slow disk.
SLOWFS   := $(shell pkg-config --exists fuse3 2>/dev/null && echo $B/bin/slowfs)
PROGRAMS := $B/bin/accel-server $B/bin/fcgi-stat-accel $B/bin/accel-warm $B/bin/accel-load $B/bin/accel-pool $(SLOWFS)
SCRIPTS  := $(wildcard scripts/accel-*)
LIBRARY  := $(filter-out Accel/Build.pm,$(patsubst scripts/lib/%,%,$(wildcard scripts/lib/Accel/*.pm scripts/lib/Accel/*/*.pm scripts/lib/Accel/*/*/*.pm)))
RIGS     := $B/bin/slowfs $B/bin/http2-front $(patsubst t/bench/%.c,$B/bin/%,$(wildcard t/bench/*.c)) \
	    $(patsubst t/tools/%.c,$B/bin/%,$(wildcard t/tools/*.c))
# The module of nginx, where the source of an nginx is: that of Debian's nginx-dev, or NGINX_SRC=DIR.
NGINX_SRC    ?= /usr/share/nginx/src
NGINX_MODULE := $B/nginx/ngx_http_stat_accel_module.so
RIGS         += $(if $(filter release,$(VARIANT)),$(if $(wildcard $(NGINX_SRC)/configure),$(NGINX_MODULE)))
UNITS    := $(patsubst t/unit/%.c,$B/unit/%,$(sort $(filter-out $(left_out),$(wildcard t/unit/*/*.c))))

# Without those of Perl programs and of nginx, which is Debian's, under a sanitizer: it would see nothing new.  (Nor in the
# suites over HTTP/2: they take minutes there, and the server's own tests of HTTP/2 run.)
PERL_TESTS := $(wildcard $(patsubst %,t/scripts/%*.t,accel-bench bench check demo graph installed mutate proc results tune))
# t/tomcat needs a JVM: make check-tomcat.  t/deb needs a Debian of its own: make check-deb.
TESTS    := $(filter-out t/tomcat/% t/deb/% t/http2/clients.t t/http2/browser% $(if $(filter release,$(VARIANT)),,t/nginx/% t/http2/suites.t $(PERL_TESTS)),$(sort $(wildcard t/*/*.t)))

FUZZERS  := $(patsubst t/fuzz/fuzz_%.c,$B/fuzz/%,$(wildcard t/fuzz/fuzz_*.c))

BENCHES  := bench bench-cold bench-tune bench-backends bench-idle bench-growth bench-fcgi bench-accel bench-hotcost bench-modules \
	    bench-firstbyte bench-opens bench-proxy bench-walk bench-ngcache bench-nodes bench-load bench-soak bench-spread bench-hostile bench-meet \
	    bench-lifecycle bench-lifecycle-accel bench-pressure bench-pins bench-tls bench-http2

.PHONY: all rigs units nginx-module check check-http2 check-tomcat asan tsan $(BENCHES) drill-applications demo results run install install-service uninstall check-units clean help lint deps fuzz man dist deb check-deb
all: $(PROGRAMS) $B/bin/accel-check $B/bin/accel-load-merge
rigs: $(RIGS) $(FUZZERS)
units: $(UNITS)

nginx-module: $(NGINX_MODULE)
$(NGINX_MODULE): $(wildcard nginx/*)
	$(call say,NGINX,$@)NGINX_SRC='$(NGINX_SRC)' NGINX_FLAGS='$(NGINX_FLAGS)' nginx/build $(@D)

# Pages, styles, scripts and manuals are files of their own kind, included as C strings.
EMBEDDED := $(patsubst %,$B/gen/%.inc,$(foreach l,$(LAYERS) t/slowfs,$(wildcard $(addprefix $l/,*.txt */*.txt */*.css */*.js))))
$B/gen/%.inc: %
	@mkdir -p $(@D)
	$(call say,EMBED,$@)sed 's/[\\"]/\\&/g; s/@BINDIR@/" STAT_ACCEL_BINDIR "/g; s/.*/"&\\n"/' $< >$@

.PHONY: embedded
embedded: $(EMBEDDED)

.PRECIOUS: $B/obj/%.o $B/gen/%.inc
$B/obj/%.o: %.c | $(EMBEDDED)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -std=gnu11 $(WARN) $(CPPFLAGS_V) -I. -I$B/gen -MMD -MP $(CFLAGS_V) $(PKG_CFLAGS) -c -o $@ $<

# What is compiled into these files changes with the command line, not with a file.
NAMED   := $(patsubst %.c,$B/obj/%.o,$(shell grep -rlE --include='*.c' 'STAT_ACCEL_(VERSION|BINDIR)|\.txt\.inc' $(LAYERS) t/unit))
$(NAMED) $B/bin/slowfs $B/bin/hostile: $B/named
$B/named: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION) $(bindir)' | cmp -s - $@ || echo '$(VERSION) $(bindir)' >$@
.PHONY: FORCE

define layer_rules
$B/lib/$1.a: $(call obj_of,$1)
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(call say,AR,$$@)ar rcs $$@ $$^
$B/unit/$1/%: $B/obj/t/unit/$1/%.o $B/obj/t/unit/test.o $(call lib_of,$1)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)$$(CC) $$(LDFLAGS_V) -o $$@ $$^ $$(LIBS_$1) $$(PKG_LIBS)
endef
# Its own malloc() wraps the malloc() of the server.
$B/unit/server/no_memory $B/unit/server/http2_no_memory: private LDFLAGS_V += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup
$B/unit/io/http2_no_memory: private LDFLAGS_V += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=nghttp2_session_server_new2
# Its own clock_gettime() sets the wall clock; its own pthread_create() fails.
$B/unit/io/tls_staple: private LDFLAGS_V += -Wl,--wrap=clock_gettime
$B/unit/io/no_threads: private LDFLAGS_V += -Wl,--wrap=pthread_create
CODE_LIBS            = -lz -lzstd -lbrotlienc -lbrotlidec
LIBS_io              = -laio $(URING_LIBS) $(SECCOMP_LIBS) $(CODE_LIBS) $(TLS_LIBS) $(HTTP2_LIBS)
LIBS_files           = $(LIBS_io)
LIBS_proxy-core      = $(LIBS_io)
# crypt(3): a sanitizer has a function of that name, too, so the linker would leave the library out
LIBS_server          = -Wl,--push-state,--no-as-needed -lcrypt -Wl,--pop-state $(LIBS_io)
LIBS_fcgi-stat-accel = -lfcgi $(LIBS_io)
LIBS_walk            = $(LIBS_io)
LIBS_accel-warm      = $(LIBS_io)
LIBS_accel-pool      = $(LIBS_io)
LIBS_accel-load      = $(LIBS_io)
$(foreach l,$(LAYERS),$(eval $(call layer_rules,$l)))

$B/bin/accel-server: $B/obj/server/main.o $(call lib_of,server)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_V) -o $@ $^ $(LIBS_server) $(PKG_LIBS)
$B/bin/fcgi-stat-accel: $B/obj/fcgi-stat-accel/main.o $(call lib_of,fcgi-stat-accel)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_V) -o $@ $^ $(LIBS_fcgi-stat-accel) $(PKG_LIBS)
# fcgi-stat-accel --check and accel-load --merge look for them beside themselves.
$B/bin/accel-check $B/bin/accel-load-merge: $B/bin/%: scripts/%
	@mkdir -p $(@D)
	$(call say,LINK,$@)ln -sf $(abspath $<) $@
$B/bin/accel-warm: $B/obj/accel-warm/main.o $(call lib_of,accel-warm)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_V) -o $@ $^ $(PKG_LIBS)
$B/bin/accel-load: $B/obj/accel-load/main.o $(call lib_of,accel-load)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_V) -o $@ $^ $(LIBS_accel-load) $(PKG_LIBS)
$B/bin/accel-pool: $B/obj/accel-pool/main.o $(call lib_of,accel-pool)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_V) -o $@ $^ $(PKG_LIBS)
$B/bin/slowfs: $(wildcard t/slowfs/*.[ch]) $B/lib/base.a $B/gen/t/slowfs/manual.txt.inc
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -std=gnu11 $(WARN) $(CPPFLAGS_V) -I. -I$B/gen $(CFLAGS_V) $(LDFLAGS_V) -o $@ $(filter %.c %.a,$^) $(FUSE_FLAGS) $(PKG_LIBS)
$B/bin/http2-front: $(wildcard t/front/*.[ch]) $B/lib/wire.a $B/lib/base.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -std=gnu11 $(WARN) $(CPPFLAGS_V) -I. $(CFLAGS_V) $(LDFLAGS_V) -o $@ $(filter %.c %.a,$^) $(PKG_CFLAGS) -lnghttp2 $(PKG_LIBS)
$B/bin/hostile: $(wildcard t/bench/hostile/*.[ch])
$B/bin/textbook: RIG_LIBS = -lfcgi
$B/bin/%: t/bench/%.c $(wildcard t/bench/*.h)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -std=gnu11 $(WARN) $(CPPFLAGS_V) -I. -O2 -g -pthread -o $@ $(filter %.c,$^) $(RIG_LIBS)
$B/bin/call-filter: RIG_LIBS = $(SECCOMP_LIBS)
$B/bin/%: t/tools/%.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -std=gnu11 $(WARN) $(CPPFLAGS_V) -O2 -g -o $@ $< $(RIG_LIBS)

# Each fuzz target with its own driver, so that make check holds their seeds; t/fuzz/run builds them with sanitizers.
$B/fuzz/%: $B/obj/t/fuzz/fuzz_%.o $B/obj/t/fuzz/driver.o $B/lib/accel-load.a $B/lib/accel-pool.a $B/lib/accel-warm.a $B/lib/walk.a $B/lib/fcgi-stat-accel.a $(call lib_of,server)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS_V) -o $@ $(filter %.o,$^) $B/lib/accel-load.a $B/lib/accel-pool.a $B/lib/accel-warm.a $B/lib/walk.a $B/lib/fcgi-stat-accel.a $(call lib_of,server) $(LIBS_fcgi-stat-accel) $(LIBS_server) $(PKG_LIBS)

-include $(shell find $B/obj -name '*.d' 2>/dev/null)

# ---------------------------------------------------------------- targets
deps:
	@scripts/install-deps

# A program that bails out or hangs ends only itself (t/lib/Test/BailOne.pm, t/tools/bounded).  What failed comes last (t/tools/failed).  TEST_LIMIT: seconds; t/site/alerts.t takes 95 under ASan, and took 390 on a busy machine.
TEST_LIMIT ?= $(if $(filter release,$(VARIANT)),420,600)
PROVE := perl -It/lib -S prove -It/lib -PTest::BailOne --exec t/tools/bounded

# Not for all targets: `make asan` would hand on the limit of a release.
check check-units check-http2: export TEST_LIMIT := $(TEST_LIMIT)

check-units: units
	$(PROVE) -j$(TEST_JOBS) $(UNITS)

# Tests drop files from memory, which a tmpfs does not do; Debian 13 has one at /tmp.
check: export TEST_SAID := $B/said
check: export TMPDIR := $(or $(TMPDIR),$(if $(filter tmpfs,$(shell stat -f -c %T /tmp)),/var/tmp,/tmp))
check: deps
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=$(VARIANT) all rigs units
	@rm -rf $B/prove.state $B/said
	@t/tools/enterable true
	B=$B t/tools/enterable $(PROVE) --timer --state=save --statefile=$B/prove.state -j$(TEST_JOBS) $(UNITS) $(TESTS) || { \
		t/tools/failed $B/prove.state $B/said || exit; \
		echo 'Failed beside others; what passes alone needs more than this machine had, or has a race:'; \
		B=$B t/tools/enterable $(PROVE) --timer --state=failed,save --statefile=$B/prove.state || { t/tools/failed $B/prove.state $B/said >&2; exit 1; }; }

# The tests of HTTP/1.1 over HTTP/2, by t/front, h2spec, and clients that are not ours.  Without its client a test is skipped.
check-http2: export TMPDIR := $(or $(TMPDIR),$(if $(filter tmpfs,$(shell stat -f -c %T /tmp)),/var/tmp,/tmp))
check-http2: deps
	@scripts/install-deps http2 || echo 'check-http2: tests of clients that are not installed are skipped'
	@t/tools/h2spec
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=$(VARIANT) all rigs
	TEST_HTTP=2 B=$B t/tools/enterable $(PROVE) --timer -j$(TEST_JOBS) t/http2/*.t $(shell perl -It/lib -MTest::Front -e 'print join " ", Test::Front::tests()')

check-tomcat: deps
	@scripts/install-deps tomcat
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=$(VARIANT) all
	B=$B prove -v -It/lib t/tomcat

asan tsan:
	@$(MAKE) --no-print-directory VARIANT=$@ check

run:
	@scripts/install-deps run
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@scripts/run-demo

demo:
	@scripts/install-deps demo
	@$(MAKE) --no-print-directory -j$(JOBS) all $B/bin/slowfs $(if $(wildcard $(NGINX_SRC)/configure),$(NGINX_MODULE))
	@B=$B scripts/demo $(ARGS)

# `make bench-cold ARGS=--quick`
$(BENCHES): deps
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=$(VARIANT) all rigs
	@B=$B scripts/bench $(patsubst bench-%,--%,$(filter bench-%,$@)) $(ARGS)

drill-applications: deps
	@$(MAKE) --no-print-directory -j$(JOBS) VARIANT=$(VARIANT) all rigs
	@B=$B t/tools/drill-applications $(ARGS)

# Everything that README.md claims: doc/RESULTS.md, the table of README.md, doc/img/.
results: deps
	@$(MAKE) --no-print-directory -j$(JOBS) all rigs
	@scripts/results $(ARGS)

lint: deps
	@scripts/lint

fuzz: deps
	@scripts/install-deps fuzz || echo 'make fuzz: no clang; the driver of t/fuzz runs the targets'
	@FUZZER=auto nice t/fuzz/run $(SECONDS)

# Manual pages come from the tables that the parsers read.
MAN := $B/man/accel-server.8 $B/man/accel-server.conf.5 $B/man/fcgi-stat-accel.1 $B/man/accel-warm.1 $B/man/accel-load.1 $B/man/accel-pool.1 $(SLOWFS:$B/bin/%=$B/man/%.1) \
       $(patsubst scripts/%,$B/man/%.1,$(SCRIPTS))
man: $(MAN)
$B/man/accel-server.8: $B/bin/accel-server
	@mkdir -p $(@D)
	$(call say,MAN,$@)$< --manual=program-roff >$@
$B/man/accel-server.conf.5: $B/bin/accel-server
	@mkdir -p $(@D)
	$(call say,MAN,$@)$< --manual=roff >$@
$B/man/fcgi-stat-accel.1: $B/bin/fcgi-stat-accel
	@mkdir -p $(@D)
	$(call say,MAN,$@)$< --manual=roff >$@
$B/man/accel-warm.1 $B/man/accel-load.1 $B/man/accel-pool.1 $B/man/slowfs.1: $B/man/%.1: $B/bin/%
	@mkdir -p $(@D)
	$(call say,MAN,$@)$< --manual=roff >$@
# In the repository, so that it can be read on the web.
.PHONY: doc/lighttpd.md doc/events.md
doc/lighttpd.md doc/events.md: doc/%.md: $B/bin/accel-server
	$(call say,DOC,$@)$< --manual=$* >$@
# Takes a minute, and needs Prometheus and gnuplot.
doc/img/dashboard.png: examples/prometheus/dashboard.json | all rigs
	$(call say,DRAW,$@)SECONDS=45 ACCEL_DASHBOARD=$@ prove -It/lib t/site/dashboard.t
$B/man/%.1: scripts/%
	@mkdir -p $(@D)
	$(call say,MAN,$@)pod2man --section=1 --release=$(VERSION) --center=stat-accel $< $@

# Completion of bash, zsh and fish, from the tables that the parsers read, too.
COMPLETION_OF := $(PROGRAMS) $(SCRIPTS)
.PHONY: completion
completion: $B/completion/made
$B/completion/made: scripts/completion $(COMPLETION_OF) scripts/lib/Accel/Command.pm
	@mkdir -p $(@D)
	$(call say,GEN,$@)scripts/completion $(@D) $(COMPLETION_OF) && touch $@

# Examples and documents name the programs as /usr/local/bin/NAME; here they get the place where they are.
EXAMPLES := $(patsubst examples/%,%,$(filter-out %.d,$(wildcard examples/*.md examples/*/* examples/*/*/*)))
install: all man completion
	install -D -m 755 -t $(DESTDIR)$(bindir) $(PROGRAMS) $(SCRIPTS)
	for f in $(LIBRARY); do install -D -m 644 scripts/lib/$$f $(DESTDIR)$(datadir)/stat-accel/perl/$$f; done
	printf '%s\n' 'package Accel::Build;' 'our $$VERSION = "$(VERSION)";' 'our $$BINDIR = "$(bindir)";' '1;' \
		>$(DESTDIR)$(datadir)/stat-accel/perl/Accel/Build.pm
	install -D -m 644 -t $(DESTDIR)$(mandir)/man1 $(filter %.1,$(MAN))
	install -D -m 644 -t $(DESTDIR)$(mandir)/man5 $(filter %.5,$(MAN))
	install -D -m 644 -t $(DESTDIR)$(mandir)/man8 $(filter %.8,$(MAN))
	install -D -m 644 -t $(DESTDIR)$(docdir) README.md CHANGELOG.md CONTRIBUTING.md LICENSE
	install -D -m 644 -t $(DESTDIR)$(docdir)/doc $(wildcard doc/*.md)
	install -D -m 644 -t $(DESTDIR)$(docdir)/doc/img $(wildcard doc/img/*)
	for f in $(EXAMPLES); do install -D -m 644 examples/$$f $(DESTDIR)$(docdir)/examples/$$f || exit; done
	install -D -m 644 -t $(DESTDIR)$(bashcompdir) $B/completion/bash/*
	install -D -m 644 -t $(DESTDIR)$(zshcompdir) $B/completion/zsh/*
	install -D -m 644 -t $(DESTDIR)$(fishcompdir) $B/completion/fish/*
	sed -i 's,/usr/local/bin,$(bindir),g' $(DESTDIR)$(docdir)/*.md $(DESTDIR)$(docdir)/doc/*.md $(EXAMPLES:%=$(DESTDIR)$(docdir)/examples/%)

# What makes services of them: units, directories, rotation of logs, AppArmor profiles, and a configuration unless there is one.
SERVICES := accel-server fcgi-stat-accel
UNIT_FILES := $(wildcard examples/systemd/*.service examples/systemd/*.socket examples/systemd/*.timer)
install-service:
	install -D -m 644 -t $(DESTDIR)$(unitdir) $(UNIT_FILES)
	sed -i 's,/usr/local/bin,$(bindir),g' $(UNIT_FILES:examples/systemd/%=$(DESTDIR)$(unitdir)/%)
	for s in $(SERVICES); do \
		install -D -m 644 examples/systemd/$$s.tmpfiles $(DESTDIR)$(tmpfilesdir)/$$s.conf && \
		install -D -m 644 examples/systemd/$$s.logrotate $(DESTDIR)$(sysconfdir)/logrotate.d/$$s && \
		sed -i 's,/usr/local/bin,$(bindir),g' $(DESTDIR)$(sysconfdir)/logrotate.d/$$s && \
		install -D -m 644 examples/apparmor/usr.bin.$$s $(DESTDIR)$(sysconfdir)/apparmor.d/usr.bin.$$s || exit; done
	install -d $(DESTDIR)$(sysconfdir)/stat-accel/conf.d $(DESTDIR)$(sysconfdir)/default
	test -e $(DESTDIR)$(sysconfdir)/stat-accel/accel-server.conf || \
		install -m 644 examples/systemd/accel-server.conf $(DESTDIR)$(sysconfdir)/stat-accel/
	test -e $(DESTDIR)$(sysconfdir)/default/fcgi-stat-accel || \
		install -m 644 examples/systemd/fcgi-stat-accel.default $(DESTDIR)$(sysconfdir)/default/fcgi-stat-accel

# What `make install` and `make install-service` put there, with the same prefix; what was written to /etc/stat-accel and /etc/default stays.
# A list of files that a trial installation makes.
uninstall:
	@rm -rf $B/uninstall && mkdir -p $B/uninstall
	@$(MAKE) -s DESTDIR=$(abspath $B)/uninstall install install-service
	@cd $B/uninstall && rm -rf .$(sysconfdir)/stat-accel .$(sysconfdir)/default && find . ! -type d >../uninstall.files && find . -depth -type d >../uninstall.dirs
	@cd / && while read -r file; do rm -f "$(DESTDIR)/$$file" || exit; done <$(abspath $B)/uninstall.files
	@grep -E 'stat-accel' $B/uninstall.dirs | while read -r dir; do [ ! -d "$(DESTDIR)/$$dir" ] || rmdir --ignore-fail-on-non-empty "$(DESTDIR)/$$dir"; done
	@rm -rf $B/uninstall $B/uninstall.files $B/uninstall.dirs

# The sources of the last commit, with debian/changelog made from CHANGELOG.md.
dist:
	@VERSION=$(VERSION) scripts/dist build

# The files of git as they are now, committed or not.
deb:
	@scripts/install-deps deb
	@VERSION=$(VERSION) scripts/deb build/deb

check-deb: deps
	@scripts/install-deps check-deb
	@$(MAKE) --no-print-directory -j$(JOBS) all rigs
	prove -v -It/lib t/deb

clean:
	rm -rf build

help:
	@echo 'make            build accel-server, fcgi-stat-accel, accel-warm, accel-load, accel-pool and slowfs in build/bin/'
	@echo 'make run        install what is missing, build, serve a sample directory (DOCROOT=DIR PORT=N)'
	@echo 'make nginx-module  nginx/ for the nginx whose source is in NGINX_SRC (Debian: nginx-dev); see examples/nginx/README.md'
	@echo 'make demo       a slow disk, stock nginx and lighttpd, without and with fcgi-stat-accel; a minute, a table, a chart'
	@echo 'make check      install what is missing, build, run every test'
	@echo 'make check-http2   the tests of HTTP/1.1 over HTTP/2, h2spec and clients, which it installs'
	@echo 'make check-tomcat  proxy-core in front of Tomcat 10 (AJP13), which it installs'
	@echo 'make asan tsan  the same under AddressSanitizer+UBSan, under ThreadSanitizer, without the tests of Perl programs'
	@echo 'make bench      files in memory: compare with nginx, lighttpd, Apache and a floor program'
	@echo 'make bench-accel  fcgi-stat-accel in front of nginx and lighttpd: who waits, how much arrives, what it costs'
	@echo 'make bench-firstbyte  cold files of 10 MB through nginx and lighttpd: first byte, hot p99, MB/s delivered'
	@echo 'make bench-opens   file systems whose open() asks again (NFS, FUSE): what the accelerator gives there, what helps'
	@echo 'make bench-modules  ten redirects, ten rewrites and conditions; compressed pages: beside lighttpd and nginx'
	@echo 'make bench-hotcost  what a hot file costs through fcgi-stat-accel, by each recipe of examples/'
	@echo 'make bench-ngcache  nginx with proxy_cache on a slow disk, without and with fcgi-stat-accel'
	@echo 'make bench-nodes  1, 2 and 4 nodes behind HAProxy, in network namespaces: hit ratios, a lost, a new and a slow node'
	@echo 'make bench-growth  what a request costs with more connections and more files, beside nginx and lighttpd'
	@echo 'make bench-load   accel-load beside wrk and h2load'
	@echo 'make bench-tls    TLS: new, resumed and kept connections, bytes, and hot requests beside a flood of handshakes'
	@echo 'make bench-http2  HTTP/2: sizes, streams and connections; hot streams beside cold ones; each flood beside healthy clients'
	@echo 'make bench-spread  connections by worker, and what a connection of one request costs: beside nginx and lighttpd'
	@echo 'make bench-lifecycle  50 reloads and 50 binary upgrades under 200 clients and long downloads: lost, cut, memory, descriptors'
	@echo 'make bench-soak   20 minutes of everything at once: faults, reloads, upgrades, rotation; what is lost, what grows, which alert fires'
	@echo 'make bench-hostile  attacks of every kind beside a victim (ARGS=--seconds=1800; VARIANT=asan)'
	@echo 'make bench-pressure  memory is short: hot files, cold files, a disk that hangs, by all servers in memory cgroups'
	@echo 'make drill-applications  applications that fail, behind accel-server, nginx and HAProxy: what clients get, and what tells (ARGS=--quick)'
	@echo 'make bench-pins   memory is short: what nginx and lighttpd behind fcgi-stat-accel read themselves, with and without --pin'
	@echo 'make bench-meet   features meet at random, and a model says what must come out (ARGS=--seconds=600; VARIANT=asan)'
	@echo 'make bench-lifecycle-accel  fcgi-stat-accel replaced behind nginx under load: what is lost, what stays behind'
	@echo 'make bench-cold bench-tune bench-backends bench-idle bench-fcgi bench-proxy bench-walk'
	@echo '                slow disks; accel-tune beside a full sweep; each file backend; idle connections;'
	@echo '                fcgi-stat-accel beside a plain libfcgi program (ARGS=--quick)'
	@echo 'make results    measures what the README claims: doc/RESULTS.md with charts, in half an hour (ARGS=--only=hot)'
	@echo 'make fuzz       parsers on changed input, SECONDS=N each (default 5), two at a time'
	@echo 'make lint       static checks: layers, events, format, C, shell, Perl, English'
	@echo 'make man        manual pages in build/man/'
	@echo 'make install    programs, scripts and manual pages below $$(DESTDIR)$$(prefix)/'
	@echo 'make install-service  units, log rotation, AppArmor profiles and /etc/stat-accel'
	@echo 'make uninstall  removes what these two put there; /etc/stat-accel and /etc/default stay'
	@echo 'make dist       build/stat-accel-VERSION.tar.gz of the last commit: the same bytes in each clone'
	@echo 'make deb        Debian packages in build/deb/'
	@echo 'make check-deb  installs, upgrades under load and purges the packages in a new Debian'
	@echo 'make clean      remove build/'
