CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

INSERT INTO "alembic_version" VALUES('0032');

CREATE TABLE alerts (
	id TEXT NOT NULL, 
	open_key TEXT, 
	rule TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	state TEXT NOT NULL, 
	words TEXT NOT NULL, 
	value DOUBLE NOT NULL, 
	threshold DOUBLE NOT NULL, 
	started_at DOUBLE NOT NULL, 
	told_at DOUBLE NOT NULL, 
	tells INTEGER NOT NULL, 
	resolved_at DOUBLE, 
	PRIMARY KEY (id), 
	CONSTRAINT alerts_state CHECK (state IN ('firing', 'resolved')), 
	CONSTRAINT alerts_open_key CHECK ((state = 'firing') = (open_key IS NOT NULL)), 
	CONSTRAINT alerts_resolved_at CHECK ((state = 'firing') = (resolved_at IS NULL)), 
	UNIQUE (open_key)
);

CREATE TABLE api_keys (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	client TEXT NOT NULL, 
	role TEXT NOT NULL, 
	scrapers BLOB NOT NULL, 
	limits BLOB NOT NULL, 
	digest TEXT NOT NULL, 
	pepper_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	revoked_at DOUBLE, 
	replaced_by TEXT NOT NULL, 
	last_used_at DOUBLE, 
	changed_at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT api_keys_role CHECK (role IN ('client', 'viewer', 'operator', 'admin')), 
	UNIQUE (digest)
);

CREATE TABLE audit (
	number BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	client TEXT NOT NULL, 
	role TEXT NOT NULL, 
	key_id TEXT NOT NULL, 
	address TEXT NOT NULL, 
	action TEXT NOT NULL, 
	resource TEXT NOT NULL, 
	status INTEGER NOT NULL, 
	code TEXT NOT NULL, 
	request_id TEXT NOT NULL, 
	count INTEGER NOT NULL, 
	"before" BLOB, 
	"after" BLOB, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (number)
);

CREATE TABLE audit_chain (
	id INTEGER NOT NULL, 
	last_number BIGINT NOT NULL, 
	last_hash TEXT NOT NULL, 
	removed_number BIGINT NOT NULL, 
	removed_hash TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT audit_chain_has_one_row CHECK (id = 1)
);

CREATE TABLE batches (
	id TEXT NOT NULL, 
	job INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	first BIGINT NOT NULL, 
	last BIGINT NOT NULL, 
	again BLOB, 
	"left" INTEGER NOT NULL, 
	part INTEGER NOT NULL, 
	done BLOB NOT NULL, 
	lane TEXT NOT NULL, 
	priority TEXT NOT NULL, 
	queued_at DOUBLE NOT NULL, 
	worker_id TEXT NOT NULL, 
	lease_until DOUBLE, begun INTEGER CONSTRAINT batches_begun CHECK (begun >= 0), lost_before BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT batches_state CHECK (state IN ('queued', 'running')), 
	CONSTRAINT batches_priority CHECK (priority IN ('high', 'normal', 'low')), 
	CONSTRAINT batches_left CHECK ("left" > 0 AND part >= 0), 
	CONSTRAINT batches_items CHECK ((again IS NULL) = (first <= last)), 
	CONSTRAINT batches_lease CHECK ((state = 'running') = (lease_until IS NOT NULL)), 
	CONSTRAINT batches_worker CHECK ((state = 'running') = (worker_id <> '')), 
	FOREIGN KEY(job) REFERENCES jobs (number)
);

CREATE TABLE channel_moves (
	id TEXT NOT NULL, 
	scraper_id TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	"before" TEXT NOT NULL, 
	"after" TEXT NOT NULL, 
	moved_at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);

CREATE TABLE channels (
	scraper_id TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	version TEXT NOT NULL, 
	moved_at DOUBLE NOT NULL, 
	PRIMARY KEY (scraper_id, channel)
);

CREATE TABLE data_keys (
	number INTEGER NOT NULL, 
	wrapped BLOB NOT NULL, 
	master TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	swept BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (number)
);

CREATE TABLE drift (
	subject TEXT NOT NULL, 
	site TEXT NOT NULL, 
	drifted INTEGER NOT NULL, 
	sketch BLOB NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	PRIMARY KEY (subject, site)
);

CREATE TABLE exports (
	id TEXT NOT NULL, 
	job_id TEXT NOT NULL, 
	wish BLOB NOT NULL, 
	state TEXT NOT NULL, 
	progress DOUBLE NOT NULL, 
	rows BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	digest TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	error TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	finished_at DOUBLE, 
	holder TEXT NOT NULL, 
	lease_until DOUBLE, notes BLOB, 
	PRIMARY KEY (id), 
	CONSTRAINT exports_state CHECK (state IN ('queued', 'running', 'done', 'failed')), 
	CONSTRAINT exports_lease CHECK ((state = 'running') = (lease_until IS NOT NULL)), 
	CONSTRAINT exports_finished_at CHECK ((state IN ('done', 'failed')) = (finished_at IS NOT NULL)), 
	CONSTRAINT exports_key CHECK ((state = 'done') = (key <> '')), 
	CONSTRAINT exports_error CHECK ((state = 'failed') = (error <> '')), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);

CREATE TABLE fetch_meters (
	day TEXT NOT NULL, 
	writer TEXT NOT NULL, 
	job_id TEXT NOT NULL, 
	site TEXT NOT NULL, 
	pool TEXT NOT NULL, 
	proxy_class TEXT NOT NULL, 
	client TEXT NOT NULL, 
	scraper TEXT NOT NULL, 
	requests BIGINT NOT NULL, 
	failures BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	runs BIGINT NOT NULL, 
	browser_ms BIGINT NOT NULL, ai_tokens BIGINT DEFAULT '0' NOT NULL, ai_millionths BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT fetch_meters_key PRIMARY KEY (day, writer, job_id, site, pool, proxy_class, client, scraper)
);

CREATE TABLE firings (
	schedule_id TEXT NOT NULL, 
	due_at DOUBLE NOT NULL, 
	kind TEXT NOT NULL, 
	state TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	settled_at DOUBLE, 
	holder TEXT NOT NULL, 
	lease_until DOUBLE, 
	PRIMARY KEY (schedule_id, due_at), 
	CONSTRAINT firings_kind CHECK (kind IN ('scheduled', 'manual')), 
	CONSTRAINT firings_state CHECK (state IN ('waiting', 'started', 'skipped', 'failed', 'missed')), 
	CONSTRAINT firings_settled_at CHECK ((state = 'waiting') = (settled_at IS NULL)), 
	CONSTRAINT firings_subject CHECK ((state = 'started') = (subject <> '')), 
	CONSTRAINT firings_lease CHECK (state = 'waiting' OR lease_until IS NULL), 
	FOREIGN KEY(schedule_id) REFERENCES schedules (id) ON DELETE CASCADE
);

CREATE TABLE idempotency_keys (
	"key" TEXT NOT NULL, 
	body_digest TEXT NOT NULL, 
	run_ids BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY ("key")
);

CREATE TABLE item_blocks (
	job INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	block BIGINT NOT NULL, 
	added INTEGER NOT NULL, 
	PRIMARY KEY (job, source, block), 
	FOREIGN KEY(job) REFERENCES jobs (number)
)
 WITHOUT ROWID;

CREATE TABLE items (
	job INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	"key" TEXT NOT NULL, 
	input BLOB NOT NULL, depth INTEGER, referrer TEXT, 
	PRIMARY KEY (job, seq), 
	CONSTRAINT items_by_key UNIQUE (job, "key"), 
	CONSTRAINT items_seq CHECK (seq >= 0)
)
 WITHOUT ROWID;

CREATE TABLE job_events (
	job INTEGER NOT NULL, 
	number BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	kind TEXT NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (job, number), 
	FOREIGN KEY(job) REFERENCES jobs (number)
)
 WITHOUT ROWID;

CREATE TABLE job_points (
	job INTEGER NOT NULL, 
	tick BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	total BIGINT NOT NULL, 
	pending BIGINT NOT NULL, 
	queued BIGINT NOT NULL, 
	in_progress BIGINT NOT NULL, 
	success BIGINT NOT NULL, 
	error BIGINT NOT NULL, 
	cancelled BIGINT NOT NULL, 
	use BLOB NOT NULL, 
	PRIMARY KEY (job, tick), 
	FOREIGN KEY(job) REFERENCES jobs (number) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE job_sinks (
	job_id TEXT NOT NULL, 
	sink TEXT NOT NULL, 
	state TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	due_at DOUBLE, 
	open_until DOUBLE NOT NULL, 
	woken_at DOUBLE, 
	covered BIGINT NOT NULL, 
	delivered BIGINT NOT NULL, 
	failed BIGINT NOT NULL, 
	attempts INTEGER NOT NULL, 
	failing_since DOUBLE, 
	delivered_at DOUBLE, 
	last_error TEXT NOT NULL, 
	progress BLOB NOT NULL, 
	revision BIGINT NOT NULL, 
	PRIMARY KEY (job_id, sink), 
	CONSTRAINT job_sinks_state CHECK (state IN ('active', 'done', 'failed')), 
	CONSTRAINT job_sinks_due_at CHECK ((state = 'active') = (due_at IS NOT NULL)), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);

CREATE TABLE jobs (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id TEXT NOT NULL, 
	status TEXT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	scraper TEXT NOT NULL, 
	scraper_id TEXT NOT NULL, 
	pinned TEXT NOT NULL, 
	lane TEXT NOT NULL, 
	priority TEXT NOT NULL, 
	total BIGINT NOT NULL, 
	pending BIGINT NOT NULL, 
	queued BIGINT NOT NULL, 
	in_progress BIGINT NOT NULL, 
	success BIGINT NOT NULL, 
	error BIGINT NOT NULL, 
	cancelled BIGINT NOT NULL, 
	cursor BIGINT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	finished_at DOUBLE, 
	reading BOOLEAN NOT NULL, 
	kill BOOLEAN NOT NULL, 
	deleting BOOLEAN NOT NULL, 
	skipped_rows BIGINT NOT NULL, 
	breaker_until DOUBLE, 
	pause_reason TEXT NOT NULL, 
	schedule_id TEXT NOT NULL, 
	events BIGINT NOT NULL, 
	failures_told INTEGER NOT NULL, 
	policy BLOB NOT NULL, 
	exports BLOB NOT NULL, 
	webhook BLOB, 
	source BLOB NOT NULL, 
	fault BLOB, 
	breaker BLOB NOT NULL, 
	use BLOB NOT NULL, files_pending BOOLEAN DEFAULT 0 NOT NULL CONSTRAINT jobs_files_pending CHECK (NOT files_pending OR status = 'cancelled'), http_statuses BLOB, redrives BIGINT DEFAULT '0' NOT NULL, profile TEXT DEFAULT '' NOT NULL, unread BOOLEAN DEFAULT 0 NOT NULL, deadline DOUBLE, archive TEXT DEFAULT '' NOT NULL, archive_key TEXT DEFAULT '' NOT NULL, domain TEXT DEFAULT '' NOT NULL, swept BLOB, sweeping BOOLEAN DEFAULT 0 NOT NULL, sweep_at DOUBLE DEFAULT '0' NOT NULL, traceparent TEXT DEFAULT '' NOT NULL, sinks BLOB, 
	CONSTRAINT jobs_status CHECK (status IN ('creating', 'running', 'paused', 'cancelling', 'finishing', 'completed', 'cancelled', 'failed')), 
	CONSTRAINT jobs_priority CHECK (priority IN ('high', 'normal', 'low')), 
	CONSTRAINT jobs_counts CHECK (total = pending + queued + in_progress + success + error + cancelled AND pending >= 0 AND queued >= 0 AND in_progress >= 0 AND success >= 0 AND error >= 0 AND cancelled >= 0), 
	CONSTRAINT jobs_cursor CHECK (cursor >= 0 AND cursor <= total), 
	CONSTRAINT jobs_finished_at CHECK ((status IN ('completed', 'cancelled', 'failed')) = (finished_at IS NOT NULL)), 
	CONSTRAINT jobs_stopped CHECK (NOT (status IN ('cancelling', 'cancelled', 'failed')) OR pending = 0), 
	CONSTRAINT jobs_going CHECK ((status IN ('cancelling', 'cancelled', 'failed')) OR (cancelled = 0 AND NOT kill)), 
	CONSTRAINT jobs_done CHECK (status NOT IN ('finishing', 'completed', 'cancelled') OR pending + queued + in_progress = 0), 
	CONSTRAINT jobs_breaker_until CHECK (status = 'paused' OR breaker_until IS NULL), 
	CONSTRAINT jobs_deleting CHECK (NOT deleting OR (status IN ('completed', 'cancelled', 'failed'))), 
	UNIQUE (id)
);

CREATE TABLE leaders (
	role TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	until DOUBLE NOT NULL, 
	PRIMARY KEY (role)
);

CREATE TABLE load_samples (
	at DOUBLE NOT NULL, 
	sample BLOB NOT NULL, 
	PRIMARY KEY (at)
);

CREATE TABLE outcomes (
	job INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	attempt INTEGER NOT NULL, 
	ok BOOLEAN NOT NULL, 
	exit_reason TEXT NOT NULL, 
	site TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	finished_at DOUBLE NOT NULL, 
	result_key TEXT NOT NULL, 
	result_bytes BIGINT NOT NULL, 
	result BLOB, 
	error BLOB, 
	usage BLOB, 
	artifacts BLOB, 
	logs BLOB, http_status INTEGER CONSTRAINT outcomes_http_status CHECK (http_status BETWEEN 100 AND 999), 
	PRIMARY KEY (job, seq), 
	CONSTRAINT outcomes_attempt CHECK (attempt >= 1), 
	CONSTRAINT outcomes_ok CHECK (ok = (exit_reason IN ('succeeded', 'gone', 'skipped'))), 
	CONSTRAINT outcomes_cancelled CHECK (exit_reason <> 'cancelled')
)
 WITHOUT ROWID;

CREATE TABLE pattern_versions (
	pattern_id TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	pattern BLOB NOT NULL, 
	origin TEXT NOT NULL, 
	made_at DOUBLE NOT NULL, 
	PRIMARY KEY (pattern_id, version)
);

CREATE TABLE patterns (
	id TEXT NOT NULL, 
	site TEXT NOT NULL, 
	client TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	status TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	revision INTEGER NOT NULL, 
	document BLOB NOT NULL, 
	health BLOB NOT NULL, 
	examples BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT patterns_status CHECK (status IN ('learning', 'ready', 'stale'))
);

CREATE TABLE proxy_pools (
	name TEXT NOT NULL, 
	definition BLOB NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE proxy_standings (
	worker_id TEXT NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	pools BLOB NOT NULL, 
	PRIMARY KEY (worker_id)
);

CREATE TABLE run_watches (
	run_id TEXT NOT NULL, 
	webhook BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (run_id)
);

CREATE TABLE runs (
	id TEXT NOT NULL, 
	status TEXT NOT NULL, 
	scraper TEXT NOT NULL, 
	scraper_id TEXT NOT NULL, 
	lane TEXT NOT NULL, 
	priority TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	max_attempts INTEGER NOT NULL, 
	timeout_seconds DOUBLE, 
	created_at DOUBLE NOT NULL, 
	queued_at DOUBLE NOT NULL, 
	not_before DOUBLE, 
	started_at DOUBLE, 
	finished_at DOUBLE, 
	lease_until DOUBLE, 
	worker_id TEXT NOT NULL, 
	cancel_requested BOOLEAN NOT NULL, 
	exit_reason TEXT, 
	reply_to TEXT NOT NULL, 
	traceparent TEXT NOT NULL, 
	result_key TEXT NOT NULL, 
	result_bytes BIGINT NOT NULL, 
	logs_cut BOOLEAN NOT NULL, 
	input BLOB NOT NULL, 
	resolved BLOB, 
	error BLOB, 
	report BLOB, 
	result BLOB, 
	logs BLOB, fetching BLOB, owner TEXT DEFAULT '' NOT NULL, swept BLOB, sweep_at DOUBLE, 
	PRIMARY KEY (id), 
	CONSTRAINT runs_status CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')), 
	CONSTRAINT runs_priority CHECK (priority IN ('high', 'normal', 'low')), 
	CONSTRAINT runs_attempt CHECK (attempt >= 1 AND max_attempts >= 1), 
	CONSTRAINT runs_exit_reason CHECK ((status IN ('queued', 'running')) = (exit_reason IS NULL)), 
	CONSTRAINT runs_finished_at CHECK ((status IN ('queued', 'running')) = (finished_at IS NULL)), 
	CONSTRAINT runs_cancelled CHECK ((status = 'cancelled') = (COALESCE(exit_reason, '') = 'cancelled')), 
	CONSTRAINT runs_succeeded CHECK ((status = 'succeeded') = (COALESCE(exit_reason, '') IN ('succeeded', 'gone', 'skipped'))), 
	CONSTRAINT runs_lease CHECK ((status = 'running') = (lease_until IS NOT NULL)), 
	CONSTRAINT runs_running CHECK (status <> 'running' OR (worker_id <> '' AND started_at IS NOT NULL)), 
	CONSTRAINT runs_queued CHECK (status <> 'queued' OR (worker_id = '' AND NOT cancel_requested)), 
	CONSTRAINT runs_not_before CHECK (status = 'queued' OR not_before IS NULL)
);

CREATE TABLE schedules (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	target TEXT NOT NULL, 
	template BLOB NOT NULL, 
	cron TEXT NOT NULL, 
	every_seconds DOUBLE, 
	time_zone TEXT NOT NULL, 
	jitter_seconds DOUBLE NOT NULL, 
	overlap TEXT NOT NULL, 
	missed TEXT NOT NULL, 
	paused BOOLEAN NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	anchor DOUBLE NOT NULL, 
	version INTEGER NOT NULL, 
	next_due DOUBLE, 
	next_at DOUBLE, 
	last_due DOUBLE, 
	last_subject TEXT NOT NULL, owner TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT schedules_target CHECK (target IN ('job', 'scrape')), 
	CONSTRAINT schedules_overlap CHECK (overlap IN ('skip', 'queue', 'cancel_previous')), 
	CONSTRAINT schedules_missed CHECK (missed IN ('skip', 'run_once', 'run_all')), 
	CONSTRAINT schedules_when CHECK ((cron <> '') = (every_seconds IS NULL)), 
	CONSTRAINT schedules_seconds CHECK (every_seconds > 0 AND jitter_seconds >= 0), 
	CONSTRAINT schedules_next CHECK ((next_due IS NULL) = (next_at IS NULL)), 
	CONSTRAINT schedules_paused CHECK (NOT paused OR next_due IS NULL)
);

CREATE TABLE scraper_secrets (
	scrapers TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value BLOB NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	PRIMARY KEY (scrapers, name)
);

CREATE TABLE scraper_state (
	scraper_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value BLOB NOT NULL, 
	changed_at DOUBLE NOT NULL, 
	PRIMARY KEY (scraper_id, "key")
);

CREATE TABLE sessions (
	scraper_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	cookies BLOB NOT NULL, 
	saved_at DOUBLE NOT NULL, 
	PRIMARY KEY (scraper_id, name)
);

CREATE TABLE sites (
	site TEXT NOT NULL, 
	rate DOUBLE, 
	burst INTEGER, 
	concurrency INTEGER, 
	adapt BOOLEAN, 
	min_rate DOUBLE, 
	breaker_failures INTEGER, 
	breaker_ratio DOUBLE, 
	breaker_seconds DOUBLE, 
	robots TEXT, 
	note TEXT NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	PRIMARY KEY (site), 
	CONSTRAINT sites_limits CHECK (rate >= 0 AND burst >= 1 AND concurrency >= 0 AND min_rate > 0), 
	CONSTRAINT sites_breaker CHECK (breaker_failures >= 1 AND breaker_ratio > 0 AND breaker_seconds > 0), 
	CONSTRAINT sites_robots CHECK (robots IN ('ignore', 'obey'))
);

CREATE TABLE snapshots (
	scope TEXT NOT NULL, 
	page TEXT NOT NULL, 
	url TEXT NOT NULL, 
	job_id TEXT NOT NULL, 
	seq BIGINT NOT NULL, 
	state BLOB NOT NULL, 
	"before" BLOB, 
	PRIMARY KEY (scope, page)
);

CREATE TABLE waiting (
	job INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	attempt INTEGER NOT NULL, 
	not_before DOUBLE NOT NULL, lost_before BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (job, seq), 
	CONSTRAINT waiting_attempt CHECK (attempt >= 1)
)
 WITHOUT ROWID;

CREATE TABLE webhook_deliveries (
	id TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	event TEXT NOT NULL, 
	url TEXT NOT NULL, 
	host TEXT NOT NULL, 
	secret TEXT NOT NULL, 
	body BLOB NOT NULL, 
	state TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	created_at DOUBLE NOT NULL, 
	next_at DOUBLE, 
	give_up_at DOUBLE NOT NULL, 
	finished_at DOUBLE, 
	log BLOB NOT NULL, 
	holder TEXT NOT NULL, 
	lease_until DOUBLE, owner TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT webhook_deliveries_state CHECK (state IN ('waiting', 'delivered', 'failed')), 
	CONSTRAINT webhook_deliveries_next_at CHECK ((state = 'waiting') = (next_at IS NOT NULL)), 
	CONSTRAINT webhook_deliveries_finished_at CHECK ((state = 'waiting') = (finished_at IS NULL)), 
	CONSTRAINT webhook_deliveries_lease CHECK (state = 'waiting' OR lease_until IS NULL), 
	CONSTRAINT webhook_deliveries_attempts CHECK (attempts >= 0)
);

CREATE TABLE webhook_marks (
	job_id TEXT NOT NULL, 
	events BIGINT NOT NULL, 
	status TEXT NOT NULL, 
	finished_at DOUBLE, 
	PRIMARY KEY (job_id), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);

CREATE TABLE workers (
	id TEXT NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	info BLOB NOT NULL, drain TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX runs_by_status ON runs (status, id);

CREATE INDEX runs_by_scraper ON runs (scraper_id, id);

CREATE INDEX runs_by_exit_reason ON runs (exit_reason, id);

CREATE INDEX runs_by_created_at ON runs (created_at);

CREATE INDEX runs_by_finished_at ON runs (finished_at);

CREATE INDEX runs_waiting ON runs (status, not_before) WHERE status = 'queued' AND not_before IS NOT NULL;

CREATE INDEX runs_published ON runs (status, queued_at) WHERE status = 'queued' AND not_before IS NULL;

CREATE INDEX runs_leased ON runs (status, lease_until) WHERE status = 'running';

CREATE INDEX idempotency_keys_by_created_at ON idempotency_keys (created_at);

CREATE INDEX channel_moves_by_scraper ON channel_moves (scraper_id, moved_at);

CREATE INDEX sessions_by_saved_at ON sessions (saved_at);

CREATE INDEX jobs_by_status ON jobs (status, number);

CREATE INDEX jobs_by_scraper ON jobs (scraper_id, id);

CREATE INDEX jobs_by_schedule ON jobs (schedule_id, id);

CREATE INDEX jobs_by_finished_at ON jobs (finished_at);

CREATE INDEX batches_by_job ON batches (job);

CREATE INDEX batches_published ON batches (queued_at) WHERE state = 'queued';

CREATE INDEX batches_leased ON batches (lease_until) WHERE state = 'running';

CREATE INDEX waiting_due ON waiting (job, not_before, seq);

CREATE INDEX outcomes_failed ON outcomes (job, seq) WHERE ok = false;

CREATE INDEX outcomes_failed_by_reason ON outcomes (job, exit_reason, seq) WHERE ok = false;

CREATE INDEX exports_by_job ON exports (job_id, created_at);

CREATE INDEX exports_by_state ON exports (state, created_at);

CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;

CREATE INDEX firings_waiting ON firings (due_at) WHERE state = 'waiting';

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE state = 'waiting';

CREATE INDEX webhook_deliveries_by_subject ON webhook_deliveries (subject, id);

CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (state, id);

CREATE INDEX webhook_deliveries_by_finished_at ON webhook_deliveries (finished_at);

CREATE INDEX run_watches_by_created_at ON run_watches (created_at);

CREATE INDEX jobs_with_webhook ON jobs (number) WHERE webhook IS NOT NULL;

CREATE INDEX jobs_with_files_pending ON jobs (id) WHERE files_pending;

CREATE INDEX jobs_by_domain ON jobs (domain, number);

CREATE INDEX audit_by_at ON audit (at);

CREATE INDEX audit_by_client ON audit (client, number);

CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit rows never change'); END;

CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit WHEN OLD.number > coalesce((SELECT removed_number FROM audit_chain), 0) BEGIN SELECT RAISE(ABORT, 'audit rows are removed by retention alone'); END;

CREATE INDEX runs_by_owner ON runs (owner, id);

CREATE INDEX schedules_by_owner ON schedules (owner, id);

CREATE INDEX webhook_deliveries_by_owner ON webhook_deliveries (owner, id);

CREATE INDEX jobs_by_owner ON jobs (owner, number);

CREATE INDEX fetch_meters_by_site ON fetch_meters (site, day);

CREATE INDEX fetch_meters_by_job ON fetch_meters (job_id, day);

CREATE INDEX fetch_meters_by_client ON fetch_meters (client, day);

CREATE INDEX runs_to_sweep ON runs (sweep_at) WHERE sweep_at IS NOT NULL;

CREATE INDEX jobs_to_sweep ON jobs (sweep_at) WHERE finished_at IS NOT NULL;

CREATE INDEX alerts_by_state ON alerts (state, id);

CREATE INDEX alerts_by_resolved_at ON alerts (resolved_at);

CREATE INDEX patterns_by_site ON patterns (site, client, "key");

CREATE INDEX job_sinks_due ON job_sinks (due_at) WHERE state = 'active';

CREATE INDEX job_sinks_by_state ON job_sinks (sink, state);

CREATE INDEX job_events_by_at ON job_events (at) WHERE kind IN ('status', 'archive');
