#!/bin/sh
# Registers the first targets of a list with an AWS target group, for the
# command provider of a churn:
#
#   aws-target-group.sh scale ARN FILE REPLICAS   the first REPLICAS of the file are registered, the others are not
#   aws-target-group.sh read ARN FILE             prints how many are registered, and how many are healthy
#
# FILE has the id of a target in each line: an instance, or an address.
set -eu
what=$1 arn=$2 file=$3

# ids prints the targets from line $1 to line $2 as the CLI wants them.
ids() { grep . "$file" | sed -n "$1,$2s/^/Id=/p"; }

case $what in
scale)
	most=$(grep -c . "$file")
	if [ "$4" -gt "$most" ]; then
		echo "there are $most targets, and $4 were asked for" >&2
		exit 77 # nothing was changed
	fi
	# shellcheck disable=SC2046 # ids have no spaces
	{
		if [ "$4" -gt 0 ]; then
			aws elbv2 register-targets --target-group-arn "$arn" --targets $(ids 1 "$4")
		fi
		if [ "$4" -lt "$most" ]; then
			aws elbv2 deregister-targets --target-group-arn "$arn" --targets $(ids "$(($4 + 1))" "$most")
		fi
	}
	;;
read)
	# A target that drains is not asked to be there any more.
	counts=$(aws elbv2 describe-target-health --target-group-arn "$arn" --output text --query "[
		length(TargetHealthDescriptions[?TargetHealth.State!='draining']),
		length(TargetHealthDescriptions[?TargetHealth.State=='healthy'])]") || exit 75
	# shellcheck disable=SC2086 # two numbers
	printf '{"desired": %d, "ready": %d}\n' $counts
	;;
*)
	echo "aws-target-group.sh: unknown word $what" >&2
	exit 64
	;;
esac
