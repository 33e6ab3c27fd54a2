// The story of `test_github_clients.py`, told with octokit. Reads the world from standard input, prints what it saw.
import { readFileSync } from "node:fs";
import { App, Octokit } from "octokit";

const world = JSON.parse(readFileSync(0, "utf8"));
const log = { debug() {}, info() {}, warn() {}, error: console.error };
const Local = Octokit.defaults({ baseUrl: world.url, log, retry: { enabled: false }, throttle: { enabled: false } });
const app = new App({
  appId: world.app_id,
  privateKey: world.private_key,
  webhooks: { secret: world.webhook_secret },
  Octokit: Local,
  log,
});
const me = new Local({ auth: world.token });
const bot = await app.getInstallationOctokit(world.installation_id);
const here = { owner: "octo-org", repo: "hello" };
const ready = `mutation ($id: ID!) { markPullRequestReadyForReview(input: { pullRequestId: $id }) { pullRequest { isDraft } } }`;

const slug = (await app.octokit.rest.apps.getAuthenticated()).data.slug;
const issue = (await me.rest.issues.create({ ...here, title: "Greet", body: "Please", labels: ["agent"] })).data;
const onIssue = { ...here, issue_number: issue.number };
const comment = (await bot.rest.issues.createComment({ ...onIssue, body: "On it" })).data;
await bot.rest.issues.updateComment({ ...here, comment_id: comment.id, body: "Working" });
await bot.rest.reactions.createForIssueComment({ ...here, comment_id: comment.id, content: "eyes" });
const base = (await bot.rest.git.getRef({ ...here, ref: "heads/main" })).data.object.sha;
const before = (await bot.rest.git.getCommit({ ...here, commit_sha: base })).data;
const blob = (await bot.rest.git.createBlob({ ...here, content: "print('hi')\n", encoding: "utf-8" })).data;
const entry = { path: "greet.py", mode: "100644", type: "blob", sha: blob.sha };
const tree = (await bot.rest.git.createTree({ ...here, base_tree: before.tree.sha, tree: [entry] })).data;
const commit = (await bot.rest.git.createCommit({ ...here, message: "Greet", tree: tree.sha, parents: [base] })).data;
await bot.rest.git.createRef({ ...here, ref: "refs/heads/agent/1", sha: commit.sha });
const asked = { ...here, title: "Greet", head: "agent/1", base: "main", body: `Fixes #${issue.number}`, draft: true };
const pull = (await bot.rest.pulls.create(asked)).data;
const onPull = { ...here, pull_number: pull.number };
const output = { title: "Waiting", summary: "…" };
const run = (await bot.rest.checks.create({ ...here, name: "pullwright/gate", head_sha: commit.sha, output })).data;
await bot.rest.checks.update({ ...here, check_run_id: run.id, conclusion: "success", output });
await me.rest.pulls.createReview({ ...onPull, event: "APPROVE", body: "ok" });
const files = await bot.paginate(bot.rest.pulls.listFiles, onPull);
const refused = await bot.rest.pulls.merge({ ...onPull, sha: commit.sha }).catch((error) => error.status);
await bot.graphql(ready, { id: pull.node_id });
const squash = { merge_method: "squash", commit_title: "Greet", commit_message: "ok" };
const merged = (await bot.rest.pulls.merge({ ...onPull, sha: commit.sha, ...squash })).data;
const level = (await bot.rest.repos.getCollaboratorPermissionLevel({ ...here, username: "octo-dev" })).data;
const compared = (await bot.rest.repos.compareCommitsWithBasehead({ ...here, basehead: `${base}...main` })).data;
const signed = await Promise.all(world.deliveries.map((one) => app.webhooks.verify(one.body, one.signature)));
const told = {
  slug,
  files: files.map((one) => [one.filename, one.status, one.additions]),
  refused,
  merged: merged.merged,
  state: (await bot.rest.pulls.get(onPull)).data.state,
  issue: (await bot.rest.issues.get(onIssue)).data.state,
  reviews: (await bot.paginate(bot.rest.pulls.listReviews, onPull)).map((one) => one.state),
  comments: (await bot.paginate(bot.rest.issues.listComments, onIssue)).map((one) => [one.user.login, one.body]),
  permission: level.permission,
  ahead: compared.ahead_by,
  verified: commit.verification.verified,
};
console.log(JSON.stringify({ ...told, signed: signed.every(Boolean) && signed.length > 0 }));
