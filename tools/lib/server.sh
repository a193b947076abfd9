# shellcheck shell=bash
# What the programs in tools/ share: packages, the ordinary user, and private
# servers.  Sourced, never run.
#
# A private server lives in one folder:
#   pg/       PostgreSQL for this server alone, so that installing metrics_ext
#             there needs no rights and meets no other server
#   build/    a copy of the sources, built
#   built     fingerprint of what build/ and pg/ were made from
#   data/     the database cluster
#   socket    link to the folder of its socket, whose path has to be short
#   *.log     what building, installing and the server said
#
# PG_MAJOR chooses the version of PostgreSQL; 15 if it is not set.

set -euo pipefail

program=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
version=${PG_MAJOR:-15}
debian_bin=/usr/lib/postgresql/$version/bin
server_user=$(id -un)
[[ $EUID != 0 ]] || server_user=postgres

# The caller's environment must not decide what is connected to, or in which
# language and encoding it answers.
for variable in "${!PG@}" "${!LC_@}" LANGUAGE MAKEFLAGS; do
	unset "$variable"
done
export LANG=C.UTF-8

# shellcheck disable=SC2034
server_packages=("postgresql-$version" "postgresql-server-dev-$version" gcc libc6-dev make)

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$program" "$*" >&2; exit 1; }

# Whether any process of a group runs, other than dead ones nobody asked about.
group_runs() {
	grep -q "^[^Z] [0-9]* $1 " < <(sed 's/.*) //' /proc/[0-9]*/stat 2>/dev/null)
}

# End a background process group and see it gone.
end_group() {
	local tries
	kill -- "-$1" 2>/dev/null || return 0
	for ((tries = 0; tries < 100; tries++)); do
		group_runs "$1" || return 0
		sleep 0.1
	done
	kill -KILL -- "-$1" 2>/dev/null || :
}

# Programs redefine at_exit; it runs whichever way the program ends.
at_exit() { :; }
leave() {
	local status=$? job jobs
	trap '' HUP INT TERM
	jobs=$(jobs -p)
	disown -a
	for job in $jobs; do
		end_group "$job"
	done
	(at_exit "$status") || :
}
trap leave EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

as_root() { if [[ $EUID == 0 ]]; then "$@"; else sudo "$@"; fi; }

# Run a command as the user who owns the servers.
as_user() {
	[[ $EUID == 0 ]] || { "$@"; return; }
	local home
	home=$(getent passwd "$server_user" | cut -d: -f6)
	HOME=$home USER=$server_user LOGNAME=$server_user \
		setpriv --reuid="$server_user" --regid="$(id -g "$server_user")" --init-groups "$@"
}

# Run a command in the background, in a process group of its own that ends with
# the program, and set job to it.
background() {
	set -m
	"$@" </dev/null &
	job=$!
	set +m
}

# Run a command with its output in a log.  In the background, since only a shell
# that waits answers a signal at once.
logged() {
	local log=$1 job
	shift
	rm -f "$log"
	background "$@" >"$log" 2>&1
	wait "$job"
}

# The same, and show the end of the log if the command fails.
quietly() {
	logged "$@" || {
		tail -n 60 "$1" >&2
		say "$program: failed: ${*:2}" >&2
		return 1
	}
}

# Install the packages that are missing.
need() {
	local package missing=()
	for package; do
		[[ $(dpkg-query -Wf '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
			missing+=("$package")
	done
	((${#missing[@]})) || return 0
	[[ $EUID == 0 ]] || command -v sudo >/dev/null ||
		die "as root, install first: apt-get install ${missing[*]}"
	say "Installing ${missing[*]}"
	(
		log=$(mktemp)
		# Debian's server package makes a cluster on port 5432 and starts it,
		# unless told otherwise.
		no_cluster=/etc/postgresql-common/createcluster.d/metrics_ext.conf
		trap 'rm -f "$log"; as_root rm -f "$no_cluster"' EXIT
		if [[ " ${missing[*]} " == *" postgresql-$version "* ]]; then
			as_root mkdir -p "${no_cluster%/*}"
			as_root tee "$no_cluster" <<<'create_main_cluster = false' >/dev/null
		fi
		apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300)
		as_root "${apt[@]}" update >"$log" 2>&1 &&
			as_root "${apt[@]}" install --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null ||
			{ tail -n 30 "$log" >&2; exit 1; }
	) || die "could not install ${missing[*]}"
}

# Make a new folder of the server's user below /tmp.
new_folder() { as_user mktemp -d "/tmp/metrics_ext.XXXXXX"; }

# Copy a folder to a new one of the server's user, who may be unable to read the
# original.  More arguments are for the tar that reads.
copy_folder() {
	as_user mkdir -p "$2"
	tar -C "$1" --mode=u+rwX "${@:3}" -cf - . | as_user tar -C "$2" -xf -
}

# The same for the project, less what was built.
copy_project() {
	copy_folder "$root" "$1" --exclude='*.o' --exclude='*.bc' --exclude='*.so' --anchored \
		--exclude=./{.git,.cluster,tmp_check,log,test/output,test/isolation/output}
}

# What a build depends on, in one word.
fingerprint() {
	(
		cd "$root"
		"$debian_bin/pg_config" --version
		find Makefile ./*.control src sql -type f ! -name '*.o' ! -name '*.bc' -print0 |
			sort -z | xargs -0 sha256sum
	) | sha256sum | cut -d' ' -f1
}

# The programs of a private server.
bin_of() { printf '%s/pg/lib/postgresql/%s/bin' "$1" "$version"; }

# Copy the project into a server's folder and build it there.
build() {
	as_user rm -rf "$1/build"
	copy_project "$1/build"
	quietly "$1/build.log" as_user make -sC "$1/build" -j2 PG_CONFIG="$debian_bin/pg_config"
}

# Install what was built.  PostgreSQL finds its files relative to its programs:
# these are copied, all else is links.
install_build() {
	local dir=$1 lib=lib/postgresql/$version share=share/postgresql/$version
	as_user rm -rf "$dir/pg"
	as_user mkdir -p "$dir/pg/$lib" "$dir/pg/${share%/*}"
	as_user cp -r "/usr/$lib/bin" "$dir/pg/$lib"
	as_user cp -rs "/usr/$lib/lib" "$dir/pg/$lib"
	as_user cp -rs "/usr/$share" "$dir/pg/$share"
	as_user ln -s /usr/include "$dir/pg/include"
	# Another release may be installed for the whole machine.
	as_user rm -rf "$dir/pg/$lib"/lib/{,bitcode/}metrics_ext* "$dir/pg/$share"/extension/metrics_ext*
	quietly "$dir/install.log" as_user make -sC "$dir/build" install PG_CONFIG="$(bin_of "$dir")/pg_config"
}

is_running() { as_user "$(bin_of "$1")/pg_ctl" -D "$1/data" status >/dev/null 2>&1; }

# Start the server of a folder; more arguments are settings, name=value.
start_server() {
	local dir=$1 bin socket options
	shift
	bin=$(bin_of "$dir")
	if [[ ! -e $dir/data/PG_VERSION ]]; then
		quietly "$dir/initdb.log" as_user "$bin/initdb" -D "$dir/data" -U postgres --auth=trust \
			--encoding=UTF8 --locale=C.UTF-8 --no-sync
		printf '%s\n' "listen_addresses = ''" "shared_preload_libraries = 'metrics_ext'" |
			as_user tee -a "$dir/data/postgresql.conf" >/dev/null
	fi
	forget_socket "$dir"
	socket=$(new_folder)
	as_user ln -s "$socket" "$dir/socket"
	options="-k $socket -p 5432"
	for setting; do
		options+=" -c $setting"
	done
	quietly "$dir/start.log" as_user "$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -t 60 \
		-o "$options" start
}

stop_server() {
	! is_running "$1" || quietly "$1/stop.log" as_user "$(bin_of "$1")/pg_ctl" -D "$1/data" -m fast -w stop
	forget_socket "$1"
}

forget_socket() {
	[[ ! -L $1/socket ]] || as_user rm -rf "$(readlink "$1/socket")" "$1/socket"
}

# Let the programs called from here reach a server without being told where.
connect_to() {
	local bin
	bin=$(bin_of "$1")
	PATH=$bin:${PATH#"$bin:"}
	PGHOST=$(readlink "$1/socket")
	export PATH PGHOST PGPORT=5432 PGUSER=postgres
}
