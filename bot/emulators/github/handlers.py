"""All routes in one table."""

from __future__ import annotations

from bot.emulators.github.call import Handler
from bot.emulators.github.routes import (
    apps,
    checks,
    comments,
    commits,
    gitdata,
    graphql,
    hooks,
    issues,
    labels,
    merging,
    organisations,
    pulls,
    refs,
    repositories,
    reviews,
    teams,
)

HANDLERS: dict[str, Handler] = {
    **apps.HANDLERS,
    **hooks.HANDLERS,
    **repositories.HANDLERS,
    **issues.HANDLERS,
    **comments.HANDLERS,
    **labels.HANDLERS,
    **gitdata.HANDLERS,
    **refs.HANDLERS,
    **pulls.HANDLERS,
    **reviews.HANDLERS,
    **merging.HANDLERS,
    **checks.HANDLERS,
    **commits.HANDLERS,
    **graphql.HANDLERS,
    **teams.HANDLERS,
    **organisations.HANDLERS,
}
