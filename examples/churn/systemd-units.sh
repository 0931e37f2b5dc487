#!/bin/sh
# Scales the units TEMPLATE@1.service to TEMPLATE@MOST.service, for the command
# provider of a churn:
#
#   systemd-units.sh scale TEMPLATE MOST REPLICAS   the first REPLICAS run, the others do not
#   systemd-units.sh read TEMPLATE MOST             prints how many run
#   systemd-units.sh kill TEMPLATE MOST COUNT       kills the last COUNT that run
set -eu
what=$1 template=$2 most=$3

unit() { echo "$template@$1.service"; }

running() { systemctl is-active --quiet "$(unit "$1")"; }

case $what in
scale)
	if [ "$4" -gt "$most" ]; then
		echo "there are $most units, and $4 were asked for" >&2
		exit 77 # nothing was changed
	fi
	start='' stop='' i=1
	while [ "$i" -le "$most" ]; do
		if [ "$i" -le "$4" ]; then start="$start $(unit "$i")"; else stop="$stop $(unit "$i")"; fi
		i=$((i + 1))
	done
	# shellcheck disable=SC2086 # names of units have no spaces
	{
		[ -z "$start" ] || systemctl start $start
		[ -z "$stop" ] || systemctl stop $stop
	}
	;;
read)
	n=0 i=1
	while [ "$i" -le "$most" ]; do
		if running "$i"; then n=$((n + 1)); fi
		i=$((i + 1))
	done
	echo "$n"
	;;
kill)
	n=$4 i=$most
	while [ "$i" -ge 1 ] && [ "$n" -gt 0 ]; do
		if running "$i"; then
			systemctl kill --signal=KILL "$(unit "$i")"
			systemctl stop "$(unit "$i")" # or Restart= would start it again
			n=$((n - 1))
		fi
		i=$((i - 1))
	done
	;;
*)
	echo "systemd-units.sh: unknown word $what" >&2
	exit 64
	;;
esac
