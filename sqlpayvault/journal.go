package sqlpayvault

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/payvault"
)

var (
	// ErrRunning is the error of [Journal.Begin] and [Journal.Resolve] while another run of the job is at work, or if
	// another run has taken over the job. [Open], Begin and Resolve can also return it if the database does not answer
	// in time, for example because a frozen run holds a lock.
	ErrRunning = errors.New("sqlpayvault: another run of the job is at work")
	// ErrClosed is the error of the methods of a closed journal, except Close. A method that waits for a lease also
	// returns it when Close is called.
	ErrClosed = errors.New("sqlpayvault: the journal is closed")
)

const (
	defaultLease = 5 * time.Second
	minLease     = 10 * time.Millisecond
	timeout      = 10 * time.Second       // longest time for a statement, all tries included
	pause        = 100 * time.Millisecond // longest wait between two tries
)

// begun is the status of a batch that has not ended.
const begun = "begun"

// Journal is a [payvault.Journal] in a database. It holds the lease of a job from the first Begin or Resolve of the job
// until Close, unless it is opened [WithoutLease]. So open a Journal for each run. It is safe for concurrent use. But
// do not use it in two calls of SubmitAll for one job at the same time: each call would report an unknown outcome for
// the batches that the other call has in flight.
type Journal struct {
	db     *sql.DB
	file   string            // path of the SQLite file; "" for Postgres
	schema string            // name of the schema in Postgres; "" for SQLite
	names  *strings.Replacer // replaces {schema} and {durable} in statements
	run    string            // random name of this journal, in the rows of leases and batches
	lease  time.Duration
	shared bool         // opened WithoutLease: other journals may work on the same jobs
	logger *slog.Logger // nil without WithLogger

	turns    chan struct{}          // has one element for each running statement or group of statements about batches
	waiting  chan *write            // statements that wait for a turn in SQLite; nil for Postgres
	outage   atomic.Pointer[outage] // nil while the database answers
	answers  atomic.Int64           // number of times that the database has answered a statement about a batch
	claiming chan struct{}          // has one element while claim takes a lease
	closing  chan struct{}          // closed by Close
	close    func() error
	working  sync.WaitGroup // counts methods and goroutines that use db
	begins   atomic.Int64   // number of calls of Begin

	mu     sync.Mutex
	closed bool
	held   map[string]bool   // jobs whose leases this journal has
	open   map[batchID]int64 // number of the Begin, for each batch that this journal has begun and not ended
	later  []statement       // statements that have failed, in the order in which repeat runs them again
}

// batchID identifies a batch in a journal.
type batchID struct {
	job   string
	batch int
}

var _ payvault.Journal = (*Journal)(nil)

// Option configures a [Journal].
type Option func(*Journal)

// WithLease sets the time after which a run without a heartbeat may lose its job. The default is 5 s, also if d is not
// positive. The minimum is 10 ms. A run writes five heartbeats in the time of its lease. If a process is killed, the
// next run of its job waits for the end of the lease before it begins its first batch.
func WithLease(d time.Duration) Option {
	return func(j *Journal) {
		j.lease = defaultLease
		if d > 0 {
			j.lease = max(d, minLease)
		}
	}
}

// WithoutLease lets several journals work on one job at the same time. It is for engines such as Temporal and River,
// which give each batch to one worker at a time. A batch that another journal has begun and not ended counts as a batch
// of unknown outcome.
func WithoutLease() Option {
	return func(j *Journal) { j.shared = true }
}

// WithLogger logs when a run begins to wait for the lease of another run, with the duration of that lease.
func WithLogger(l *slog.Logger) Option {
	return func(j *Journal) { j.logger = l }
}

// newJournal returns a journal that is not started yet.
func newJournal(db *sql.DB, opts []Option) *Journal {
	j := &Journal{
		db: db, run: rand.Text(), lease: defaultLease,
		turns: make(chan struct{}, connectionsOf(db)), claiming: make(chan struct{}, 1), closing: make(chan struct{}),
		held: map[string]bool{}, open: map[batchID]int64{},
	}
	for _, opt := range opts {
		opt(j)
	}
	return j
}

// setNames sets what replaces {schema} and {durable} in the statements: the name of the schema, and one of the
// constants durably and notDurably.
func (j *Journal) setNames(schema, durable string) {
	j.names = strings.NewReplacer("{schema}", schema, "{durable}", durable)
}

// start starts the heartbeats, unless the journal is opened WithoutLease, and prepares Close. The tables must exist.
func (j *Journal) start() {
	j.close = sync.OnceValue(j.end)
	if !j.shared {
		j.working.Go(j.beat)
	}
}

// Begin records that a batch is about to be sent, as [payvault.Journal] requires. Unless the journal is opened
// [WithoutLease], the first Begin of a job takes the lease of the job. If another run has the lease, Begin waits. After
// two heartbeats of the other run, Begin returns [ErrRunning]. If no heartbeat comes for the time of the lease, Begin
// takes the lease.
//
// If Begin fails, its statement may have been committed nevertheless. Then the journal records the batch as not sent as
// soon as the database answers again. If the journal is closed before that, Close tries this for up to 10 s.
func (j *Journal) Begin(ctx context.Context, job string, batch int) (state payvault.BatchState, err error) {
	if err := j.enter(); err != nil {
		return state, err
	}
	defer j.working.Done()
	if err := j.claim(ctx, job); err != nil {
		return state, err
	}
	number, isTried := j.begins.Add(1), false
	err = j.try(ctx, func(ctx context.Context, db querier) (err error) {
		isTried = true
		state, err = j.insert(ctx, db, job, batch, number)
		return err
	})
	switch {
	case err == nil:
		if !state.Begun {
			j.setOpen(batchID{job, batch}, number)
		}
		return state, nil
	case errors.Is(err, ErrRunning):
		j.disclaim(job)
	case isTried && !isAnswer(err): // the database may have committed the statement, and its answer was lost
		j.repeatLater(j.takeBack(job, batch, number))
	}
	return payvault.BatchState{}, orRunning(ctx, err)
}

// takeBack returns a statement that records a batch as not sent, if the batch is begun and if the call of Begin with a
// number has begun it. Each call of Begin in this run has a number. So the statement does no harm if a later call has
// begun the batch again.
func (j *Journal) takeBack(job string, batch int, number int64) statement {
	return func(ctx context.Context, db querier) error {
		_, err := j.exec(ctx, db, `UPDATE {schema}.payvault_batches SET status = '`+string(payvault.BatchNotSent)+`'
			FROM {durable} WHERE job = $1 AND batch = $2 AND run = $3 AND number = $4 AND status = '`+begun+`'`,
			job, batch, j.run, number)
		return err
	}
}

// The method insert joins three parts into one statement: insertBatch, then withLease or noLease, then orNotSent. The
// statement records that a batch has begun, if the batch has no row yet, or if its row has the status "not sent". With
// the part withLease, the run must also have the lease. The columns run and number identify the call of Begin.
const (
	insertBatch = `INSERT INTO {schema}.payvault_batches AS known (job, batch, status, run, number)
		SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), '` + begun + `', CAST($3 AS TEXT), CAST($4 AS BIGINT)
		FROM {durable}`
	withLease = ` WHERE EXISTS (SELECT 1 FROM {schema}.payvault_jobs WHERE job = $1 AND holder = $3)`
	noLease   = ` WHERE 1 = 1`
	orNotSent = ` ON CONFLICT (job, batch) DO UPDATE
		SET status = excluded.status, run = excluded.run, number = excluded.number,
		cards = 0, request_id = '', status_code = 0, code = '', message = '', fields = ''
		WHERE known.status = '` + string(payvault.BatchNotSent) + `'`
)

// insert records that a batch has begun. It also succeeds if an earlier try of the same Begin has recorded this. If
// another call has recorded the batch, with a status other than "not sent", insert returns the recorded state.
// Otherwise it returns ErrRunning if the lease is lost. Without a lease it returns errAgain if another journal has
// changed the row meanwhile. If another program has switched the journal mode of the file, insert records nothing and
// returns errMode.
func (j *Journal) insert(
	ctx context.Context, db querier, job string, batch int, number int64,
) (s payvault.BatchState, err error) {
	if err := j.checkMode(ctx, db); err != nil {
		return s, err
	}
	statement := insertBatch + withLease + orNotSent
	if j.shared {
		statement = insertBatch + noLease + orNotSent
	}
	n, err := j.exec(ctx, db, statement, job, batch, j.run, number)
	if err != nil || n > 0 {
		return s, err
	}
	return j.known(ctx, db, job, batch, number)
}

// errAgain makes retry repeat the statement of insert, because another journal has changed the row of the batch.
var errAgain = errors.New("another journal has changed the batch")

// known returns the recorded state of a batch for which the statement of insert has changed no row.
func (j *Journal) known(
	ctx context.Context, db querier, job string, batch int, number int64,
) (s payvault.BatchState, err error) {
	var o payvault.BatchOutcome
	var run string
	var by int64
	err = db.QueryRowContext(ctx, j.names.Replace(`SELECT run, number, `+outcomeColumns+`
		FROM {schema}.payvault_batches WHERE job = $1 AND batch = $2`), job, batch).
		Scan(append([]any{&run, &by}, outcomeOf(&o)...)...)
	switch {
	case err == nil && o.Status == payvault.BatchNotSent && j.shared: // another journal has ended the batch meanwhile
		return s, errAgain
	case errors.Is(err, sql.ErrNoRows), err == nil && o.Status == payvault.BatchNotSent: // the lease is lost
		return s, ErrRunning
	case err != nil:
		return s, err
	case o.Status != begun:
		return payvault.BatchState{Begun: true, Outcome: &o}, nil
	case run == j.run && by == number: // an earlier try of this Begin has made the row, and its answer was lost
		return s, nil
	}
	return payvault.BatchState{Begun: true}, nil
}

// upsertBatch records an outcome. It records the outcome "not sent" only if the Begin with the number $11 of this run
// has begun the batch. So a late repeat does no harm if the batch was begun again meanwhile.
const upsertBatch = `INSERT INTO {schema}.payvault_batches AS known (job, batch, run, number, ` + outcomeColumns + `)
	SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS TEXT), 0, ` + outcomeValues + ` FROM {durable}
	WHERE 1 = 1 ON CONFLICT (job, batch) DO UPDATE
	SET status = excluded.status, cards = excluded.cards, request_id = excluded.request_id,
	status_code = excluded.status_code, code = excluded.code, message = excluded.message, fields = excluded.fields
	WHERE excluded.status <> '` + string(payvault.BatchNotSent) + `'
	OR known.status = '` + begun + `' AND known.run = excluded.run AND known.number = CAST($11 AS BIGINT)`

// End records the outcome of a batch, as [payvault.Journal] requires. It needs no lease, because a run that has lost
// its lease must still record what it has sent. If the database fails, for example because a connection drops, End
// tries again for up to 10 s. If the database answers no call in this time, all waiting calls of Begin and End give up
// together. After End has given up, the journal tries again in the background until the outcome is recorded, or until
// Close has tried for up to 10 s.
func (j *Journal) End(ctx context.Context, job string, batch int, outcome payvault.BatchOutcome) error {
	if err := j.enter(); err != nil {
		return err
	}
	defer j.working.Done()
	number := j.takeOpen(batchID{job, batch})
	record := func(ctx context.Context, db querier) error {
		_, err := j.exec(ctx, db, upsertBatch, job, batch, j.run, string(outcome.Status), outcome.Cards,
			outcome.RequestID, outcome.StatusCode, outcome.Code, outcome.Message, fields(outcome.Fields), number)
		if err != nil {
			return err
		}
		return j.checkMode(ctx, db) // afterwards, so that the outcome of a batch that was sent is recorded in any case
	}
	err := j.try(ctx, record)
	if err != nil && !isAnswer(err) {
		j.repeatLater(record)
	}
	return err
}

// Close waits for the methods that are running. It tries for up to 10 s to complete the records of failed calls of
// Begin and End, releases the leases, and closes the file that [Open] has opened.
func (j *Journal) Close() error { return j.close() }

// end waits until no method uses the database, runs the statements of j.later, releases the leases, and closes the
// file of SQLite. Close calls end once.
func (j *Journal) end() error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	close(j.closing)
	j.working.Wait()
	deadline := time.Now().Add(timeout)
	for _, run := range j.later { // the callers of Begin and End know the errors of these statements
		_ = retry(context.Background(), deadline, func(ctx context.Context) error { return run(ctx, j.db) })
	}
	_, err := j.change(context.Background(), `UPDATE {schema}.payvault_jobs SET holder = '' WHERE holder = $1`, j.run)
	if j.file != "" {
		// Remove the empty -journal file. But if the journal was moved away, the -journal file stays, so that Open does not
		// make a new journal at the old path.
		if _, missing := os.Lstat(j.file); missing == nil {
			_, _ = j.db.ExecContext(context.Background(), `PRAGMA journal_mode = DELETE`)
		}
		err = errors.Join(err, j.db.Close())
	}
	return err
}

// setOpen keeps the number of the Begin that has begun a batch, for the End of the batch.
func (j *Journal) setOpen(id batchID, number int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open[id] = number
}

// takeOpen returns the number of the Begin that has begun a batch, and forgets it. It returns 0, which is the number of
// no Begin, if this journal has not begun the batch.
func (j *Journal) takeOpen(id batchID) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	number := j.open[id]
	delete(j.open, id)
	return number
}

// enter counts a method that uses the database, so that Close waits for it. It fails if the journal is closed.
func (j *Journal) enter() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return ErrClosed
	}
	j.working.Add(1)
	return nil
}
