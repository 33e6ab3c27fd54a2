"""Routes of reviews and review comments."""

from __future__ import annotations

from typing import Any

from bot.emulators.github.body import Body
from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.errors import forbidden, invalid_request, not_found, unprocessable
from bot.emulators.github.records import Issue, Pull, Review, ReviewComment
from bot.emulators.github.routes.issues import LONGEST_BODY
from bot.emulators.github.routes.labels import react
from bot.emulators.github.routes.paging import paged
from bot.emulators.github.routes.scene import scene
from bot.emulators.github.shapes import pulls
from bot.emulators.github.webhooks.events import on_review, on_review_comment

_R = "/repos/{owner}/{repo}/pulls"
_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


def _shape(call: Call, issue: Issue, review: Review) -> dict[str, Any]:
    return pulls.review(call.repository, issue, review, call.urls)


def _find(call: Call) -> tuple[Issue, Pull, Review]:
    issue, pull = call.pull()
    wanted = call.number("review_id")
    for review in pull.reviews:
        if review.id == wanted and (review.state != "PENDING" or review.user is call.user):
            return issue, pull, review
    raise not_found()


async def list_reviews(call: Call) -> Reply:
    issue, pull = call.pull()
    mine = [review for review in pull.reviews if review.state != "PENDING" or review.user is call.actor.user]
    return paged(call, [_shape(call, issue, review) for review in mine])


async def get_review(call: Call) -> Reply:
    issue, _, review = _find(call)
    return Reply(_shape(call, issue, review))


async def create_review(call: Call) -> Reply:
    """`commit_id` may be any commit the pull request has had; without it the head at this very moment is taken."""
    issue, pull = call.pull()
    event = call.body.one_of("event", tuple(_STATES))
    body = call.body.optional_text("body", "") or ""
    comments = call.body.objects("comments")
    commit = call.body.optional_text("commit_id") or pull.head_sha
    await _check_commit(call, pull, commit)
    if any(review.state == "PENDING" and review.user is call.user for review in pull.reviews):
        raise unprocessable("Unprocessable Entity", "User can only have one pending review per pull request")
    if event is not None:
        _check_verdict(call, issue, event, body, bool(comments))
    number, node = call.world.ids.new("PRR")
    review = Review(number, node, call.user, body, "PENDING", commit, None)
    drafts = [_draft(call, issue, review, entry) for entry in comments]
    pull.reviews.append(review)
    pull.review_comments.extend(drafts)
    if event is not None:
        _submit(call, issue, pull, review, event)
    return Reply(_shape(call, issue, review))


async def _check_commit(call: Call, pull: Pull, commit: str) -> None:
    known = commit in pull.heads
    if not known:
        listed = await call.bare.run("rev-list", *pull.heads, "--not", pull.base_sha)
        known = commit in listed.stdout.decode().split()
    if not known:
        raise unprocessable("Unprocessable Entity", "commit_id is not part of the pull request")


def _check_verdict(call: Call, issue: Issue, event: str, body: str, has_comments: bool) -> None:  # noqa: FBT001
    if len(body) > LONGEST_BODY:
        raise unprocessable("Unprocessable Entity", f"Body is too long (maximum is {LONGEST_BODY} characters)")
    if issue.user is call.user and event in {"APPROVE", "REQUEST_CHANGES"}:
        verb = "approve" if event == "APPROVE" else "request changes on"
        raise unprocessable("Unprocessable Entity", f"Can not {verb} your own pull request")
    if not body.strip() and (event == "REQUEST_CHANGES" or (event == "COMMENT" and not has_comments)):
        raise unprocessable("Unprocessable Entity", "Body can't be blank")
    if call.actor.kind == "person":
        call.demand_open_conversation(issue)


def _draft(call: Call, issue: Issue, review: Review, entry: Body) -> ReviewComment:
    path, body = entry.text("path"), entry.text("body")
    line = entry.integer("line") or entry.integer("position")
    now = call.world.clock.now()
    number, node = call.world.ids.new("PRRC")
    side = entry.one_of("side", ("LEFT", "RIGHT"), "RIGHT") or "RIGHT"
    commit = review.commit_id or ""
    return ReviewComment(number, node, issue.number, review.id, call.user, body, path, line, side, commit, now, now)


def _submit(call: Call, issue: Issue, pull: Pull, review: Review, event: str) -> None:
    review.state = _STATES[event]
    review.submitted_at = issue.updated_at = call.world.clock.now()
    if call.user in pull.requested_reviewers:
        pull.requested_reviewers.remove(call.user)
    on_review(scene(call), "submitted", issue, review)
    for comment in pull.review_comments:
        if comment.review_id == review.id:
            on_review_comment(scene(call), "created", issue, comment)


async def submit_review(call: Call) -> Reply:
    issue, pull, review = _find(call)
    event = call.body.one_of("event", tuple(_STATES))
    if event is None:
        raise invalid_request('"event" wasn\'t supplied.')
    if review.state != "PENDING" or review.user is not call.user:
        raise unprocessable("Unprocessable Entity", "Could not submit the pull request review.")
    review.body = call.body.optional_text("body", review.body) or ""
    _check_verdict(call, issue, event, review.body, any(c.review_id == review.id for c in pull.review_comments))
    _submit(call, issue, pull, review, event)
    return Reply(_shape(call, issue, review))


async def update_review(call: Call) -> Reply:
    issue, _, review = _find(call)
    if review.user is not call.user:
        raise forbidden("You cannot edit this review.")
    before, review.body = review.body, call.body.text("body")
    if review.state != "PENDING":
        on_review(scene(call), "edited", issue, review, changes={"body": {"from": before}})
    return Reply(_shape(call, issue, review))


async def delete_review(call: Call) -> Reply:
    issue, pull, review = _find(call)
    if review.state != "PENDING":
        raise unprocessable("Unprocessable Entity", "Can not delete a non-pending pull request review")
    pull.reviews.remove(review)
    return Reply(_shape(call, issue, review))


async def dismiss_review(call: Call) -> Reply:
    issue, pull, review = _find(call)
    message = call.body.text("message")
    if not message.strip():
        raise unprocessable("Unprocessable Entity", "Message can't be blank")
    if review.state not in {"APPROVED", "CHANGES_REQUESTED"}:
        word = review.state.lower()
        raise unprocessable("Unprocessable Entity", f"Can not dismiss a {word} pull request review")
    if pull.base_ref in call.repository.protections and call.actor.kind == "person":
        call.demand_role("admin")
    review.state = "DISMISSED"
    on_review(scene(call), "dismissed", issue, review)
    return Reply(_shape(call, issue, review))


async def list_comments(call: Call) -> Reply:
    _, pull = call.pull()
    return paged(call, [pulls.review_comment(call.repository, one, call.urls) for one in pull.review_comments])


async def create_comment(call: Call) -> Reply:
    issue, pull = call.pull()
    call.demand_open_conversation(issue)
    parent = call.body.integer("in_reply_to")
    if parent is not None:
        return _reply_to(call, issue, pull, parent)
    commit, path = call.body.text("commit_id"), call.body.text("path")
    await _check_commit(call, pull, commit)
    line = call.body.integer("line")
    if line is None and call.body.optional_text("subject_type") != "file" and not call.body.has("position"):
        raise invalid_request('"line" wasn\'t supplied.')
    return _add_comment(call, issue, pull, path=path, line=line, commit=commit, parent=None)


async def reply(call: Call) -> Reply:
    issue, pull = call.pull()
    call.demand_open_conversation(issue)
    return _reply_to(call, issue, pull, call.number("comment_id"))


def _reply_to(call: Call, issue: Issue, pull: Pull, parent: int) -> Reply:
    for one in pull.review_comments:
        if one.id == parent:
            root = one.in_reply_to or one.id
            return _add_comment(call, issue, pull, path=one.path, line=one.line, commit=one.commit_id, parent=root)
    raise not_found()


def _add_comment(
    call: Call, issue: Issue, pull: Pull, *, path: str, line: int | None, commit: str, parent: int | None
) -> Reply:
    body = call.body.text("body")
    if not body.strip() or len(body) > LONGEST_BODY:
        raise unprocessable("Validation Failed", "body is too long or blank")
    now = call.world.clock.now()
    number, node = call.world.ids.new("PRRC")
    one = ReviewComment(
        number, node, issue.number, None, call.user, body, path, line, "RIGHT", commit, now, now, parent
    )
    pull.review_comments.append(one)
    on_review_comment(scene(call), "created", issue, one)
    return Reply(pulls.review_comment(call.repository, one, call.urls), 201)


def _find_comment(call: Call) -> tuple[Issue, Pull, ReviewComment]:
    wanted = call.number("comment_id")
    for issue, pull in call.repository.pulls():
        for one in pull.review_comments:
            if one.id == wanted:
                return issue, pull, one
    raise not_found()


async def get_comment(call: Call) -> Reply:
    return Reply(pulls.review_comment(call.repository, _find_comment(call)[2], call.urls))


async def update_comment(call: Call) -> Reply:
    issue, _, one = _find_comment(call)
    if one.user is not call.user:
        raise forbidden("Must have admin rights to Repository.")
    before, one.body = one.body, call.body.text("body")
    one.updated_at = call.world.clock.now()
    on_review_comment(scene(call), "edited", issue, one, changes={"body": {"from": before}})
    return Reply(pulls.review_comment(call.repository, one, call.urls))


async def delete_comment(call: Call) -> Reply:
    issue, pull, one = _find_comment(call)
    if one.user is not call.user and not call.has_role("write"):
        raise forbidden("Must have admin rights to Repository.")
    pull.review_comments.remove(one)
    on_review_comment(scene(call), "deleted", issue, one)
    return Reply(status=204)


async def react_to_comment(call: Call) -> Reply:
    return react(call, _find_comment(call)[2].reactions)


HANDLERS: dict[str, Handler] = {
    f"GET {_R}/{{number}}/reviews": list_reviews,
    f"POST {_R}/{{number}}/reviews": create_review,
    f"GET {_R}/{{number}}/reviews/{{review_id}}": get_review,
    f"PUT {_R}/{{number}}/reviews/{{review_id}}": update_review,
    f"DELETE {_R}/{{number}}/reviews/{{review_id}}": delete_review,
    f"POST {_R}/{{number}}/reviews/{{review_id}}/events": submit_review,
    f"PUT {_R}/{{number}}/reviews/{{review_id}}/dismissals": dismiss_review,
    f"GET {_R}/{{number}}/comments": list_comments,
    f"POST {_R}/{{number}}/comments": create_comment,
    f"POST {_R}/{{number}}/comments/{{comment_id}}/replies": reply,
    f"GET {_R}/comments/{{comment_id}}": get_comment,
    f"PATCH {_R}/comments/{{comment_id}}": update_comment,
    f"DELETE {_R}/comments/{{comment_id}}": delete_comment,
    f"POST {_R}/comments/{{comment_id}}/reactions": react_to_comment,
}
