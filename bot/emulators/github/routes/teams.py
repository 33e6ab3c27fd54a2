"""Who is on which team of an organisation."""

from __future__ import annotations

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.errors import not_found


async def membership(call: Call) -> Reply:
    """Only who is on it is told; a team that is not there answers like a person who is not on it."""
    team = f"{call.values['org']}/{call.values['team_slug']}"
    teams = {name.lower(): members for name, members in call.world.config.seed.teams.items()}
    login = call.values["login"]
    if login.lower() not in {member.lower() for member in teams.get(team.lower(), ())}:
        raise not_found()
    return Reply(
        {
            "url": call.urls.api(f"orgs/{team.replace('/', '/teams/')}/memberships/{login}"),
            "role": "member",
            "state": "active",
        }
    )


HANDLERS: dict[str, Handler] = {"GET /orgs/{org}/teams/{team_slug}/memberships/{login}": membership}
