# shellcheck shell=bash
# Virtual environments of Python, made once from a lock file and kept for the
# next time.  Sourced after server.sh, never run.

# shellcheck disable=SC2034
venv_packages=(python3-venv python3-dev g++)

# Set venv to an environment with what a lock file names, all of it and nothing
# else.  It lives in the cache folder of the user who owns the servers, under
# the hash of the lock file; what was interrupted is begun again.
need_venv() {
	local lock=$1 log=$2 cache
	# shellcheck disable=SC2016
	cache=$(as_user sh -c 'printf %s "${XDG_CACHE_HOME:-$HOME/.cache}/metrics_ext"')
	venv=$cache/venv-$({ /usr/bin/python3 -VV && cat "$lock"; } | sha256sum | cut -c1-16)
	if [[ ! -e $venv/complete ]]; then
		say "Installing ${lock#"$root/"} in $venv; this takes minutes, once"
		as_user mkdir -p "$cache"
		as_user tee "$venv.txt" <"$lock" >/dev/null
		# shellcheck disable=SC2016
		quietly "$log" as_user flock "$cache" sh -ec '
			[ ! -e "$1/complete" ] || exit 0
			rm -rf "$1"
			/usr/bin/python3 -m venv "$1"
			"$1/bin/pip" install --disable-pip-version-check --no-input --no-deps -r "$1.txt"
			touch "$1/complete"' sh "$venv"
	fi
}
