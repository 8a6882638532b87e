#!/bin/sh
# Measures, compares with the baseline and keeps results: the one step of action.yml and gitlab.yml.
#
#   ASSAY_MEASURE         words after `assay` that measure, such as: profile /data --block 8K --repeat 5
#   ASSAY_LIMITS          limits of change, one a line or with commas between: iops<-5%,read.p99>+10%
#   ASSAY_SET_BASELINE    true: keep the run as the baseline where it is held, or is the first (on the main branch)
#   ASSAY_UNKNOWN         pass (default) or fail: what a change does that cannot be told
#   ASSAY_BASELINES, ASSAY_RESULTS, ASSAY_REPORTS   folders: assay-baselines, assay-results, assay-reports
#
# Exit code: 0 as the baseline, 6 worse than it allows, 5 unknown with ASSAY_UNKNOWN=fail, else that of the measurement.
set -eu

baselines=${ASSAY_BASELINES:-assay-baselines}
results=${ASSAY_RESULTS:-assay-results}
reports=${ASSAY_REPORTS:-assay-reports}
mkdir -p "$results" "$reports"

code=0
# The words of ASSAY_MEASURE are those of a command line.
# shellcheck disable=SC2086
assay ${ASSAY_MEASURE:?words after assay that measure} -o "$results" || code=$?
case $code in
0 | 1 | 5) ;; # a limit of the run itself is no matter of the gate
*) exit "$code" ;;
esac
# Names of runs begin with their time.
run=$(find "$results" -mindepth 1 -maxdepth 1 -type d | sort | tail -n 1)

gate=0
if [ -d "$baselines/baseline" ]; then
    set --
    while IFS= read -r limit; do
        [ -z "$limit" ] || set -- "$@" --fail-on "$limit"
    done <<LIMITS
$(printf '%s\n' "${ASSAY_LIMITS:-iops<-5%,read.p99>+10%}" | tr ',' '\n')
LIMITS
    assay compare "$run" --to baseline --baselines "$baselines" "$@" \
        -o "$reports/assay.xml" -o "$reports/assay.sarif" -o "$reports/assay.md" -o "$reports/assay.json" || gate=$?
else
    echo "no baseline yet: ASSAY_SET_BASELINE=true keeps this run as one"
fi
case $gate in
0) ;;
5)
    echo "unknown whether the run is worse: repeat it (--repeat 5), or measure longer"
    [ "${ASSAY_UNKNOWN:-pass}" = pass ] || exit 5
    ;;
*) exit "$gate" ;;
esac
if [ "${ASSAY_SET_BASELINE:-false}" = true ] && [ "$gate" = 0 ]; then
    assay baseline set "$run" --baselines "$baselines"
fi
