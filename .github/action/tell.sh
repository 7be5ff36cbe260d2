#!/usr/bin/env bash
# Keep one comment on the pull request, or one issue, that says how things stand.
set -euo pipefail

mark="<!-- masa: ${GITHUB_WORKFLOW:-masa} -->"
title="masa: the API changed"
body=$MASA_REPORT/comment.md
run=${GITHUB_SERVER_URL:-https://github.com}/$GITHUB_REPOSITORY/actions/runs/${GITHUB_RUN_ID:-0}
{
  echo "$mark"
  cat "$MASA_REPORT/report.md"
  echo
  echo "[The whole report]($run) is kept with the run."
} >"$body"

number() { # of the pull request, from the event
  python -c 'import json, os; print(json.load(open(os.environ["GITHUB_EVENT_PATH"])).get("pull_request", {}).get("number", ""))'
}

first_with_mark() { # the first id in a list of comments or issues, in JSON, whose text has the mark
  python -c '
import json, sys
found = [one for page in json.load(sys.stdin) for one in (page if isinstance(page, list) else [page])]
mine = [one for one in found if (one.get("body") or "").startswith(sys.argv[1]) and "pull_request" not in one]
print(mine[0][sys.argv[2]] if mine else "")' "$mark" "$1"
}

api() { gh api --header 'Accept: application/vnd.github+json' "$@"; }

if [ "$MASA_TELL" = comment ]; then
  pull=$(number)
  if [ -z "$pull" ]; then
    echo "not a pull request: nothing to comment on" >&2
    exit 0
  fi
  id=$(api "repos/$GITHUB_REPOSITORY/issues/$pull/comments?per_page=100" --paginate --slurp | first_with_mark id)
  if [ -n "$id" ]; then
    api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --field "body=@$body" >/dev/null
  else
    api --method POST "repos/$GITHUB_REPOSITORY/issues/$pull/comments" --field "body=@$body" >/dev/null
  fi
  exit 0
fi

open=$(api "repos/$GITHUB_REPOSITORY/issues?state=open&per_page=100" --paginate --slurp | first_with_mark number)
# Exit code 0 is all that says that nothing changed that matters: a silent canary has no verdict.
case $MASA_CODE in
  1)
    if [ -n "$open" ]; then
      api --method PATCH "repos/$GITHUB_REPOSITORY/issues/$open" --field "body=@$body" >/dev/null
    else
      api --method POST "repos/$GITHUB_REPOSITORY/issues" --field "title=$title" --field "body=@$body" >/dev/null
    fi
    ;;
  0)
    if [ -n "$open" ]; then
      api --method PATCH "repos/$GITHUB_REPOSITORY/issues/$open" --field "body=@$body" --field state=closed >/dev/null
    fi
    ;;
  *)
    # Nothing was decided: what is open stays open, and says how things stand.
    if [ -n "$open" ]; then
      api --method PATCH "repos/$GITHUB_REPOSITORY/issues/$open" --field "body=@$body" >/dev/null
    fi
    ;;
esac
