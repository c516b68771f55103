package sqlpayvault

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver of Open

	"example.com/payvault"
)

var (
	// ErrRunning is the error of Begin when another run of the job is at work, or has taken it over.
	ErrRunning = errors.New("sqlpayvault: another run of the job is at work")
	// ErrClosed is the error of a journal that was closed.
	ErrClosed = errors.New("sqlpayvault: the journal is closed")

	errJobName = errors.New("sqlpayvault: the name of the job is empty, has a NUL, or is not valid UTF-8")
)

const (
	defaultLease = 5 * time.Second
	timeout      = 10 * time.Second // of a transaction, and of all that try one again
	pause        = 100 * time.Millisecond
)

// Journal is a [payvault.Journal] in a database. It holds the lease of each job that it has begun a batch of until
// it is closed: open one for a run. It is safe for concurrent use, by one walk of a job at a time: of two at the
// same moment each may find that the other is at work.
type Journal struct {
	db      *sql.DB
	own     bool   // db was opened here
	run     string // the holder of its leases
	lease   time.Duration
	shared  bool // without leases
	ops     chan *op
	closed  chan struct{}
	close   func() error
	running sync.WaitGroup // what uses db by itself

	mu     sync.Mutex
	over   bool // it is being closed
	claims map[string]*claim
	begun  map[key]bool // by this journal, and not ended yet
}

var _ payvault.Journal = (*Journal)(nil)

// key is a batch of a job.
type key struct {
	job   string
	batch int
}

// Option sets up a [Journal].
type Option func(*Journal)

// WithLease sets how long a job stays with a run that gives no sign of life; 5 s if it is not positive, else 1 ms at
// least. A run gives one five times in that time. The next run of a job whose process was killed waits for so long
// before its first batch, whatever lease it has itself.
func WithLease(d time.Duration) Option {
	return func(j *Journal) {
		if j.lease = defaultLease; d > 0 {
			j.lease = max(d, time.Millisecond)
		}
	}
}

// WithoutLease lets several journals work on one job at a time, as the workers of Temporal or River do: these give each
// batch to one worker at a time. A batch that another journal has begun and not ended is of unknown outcome.
func WithoutLease() Option {
	return func(j *Journal) { j.shared = true }
}

// Open opens a journal in a file, by SQLite. A file that is not there is made, for its owner only. Two more are
// beside it while it is open, or after a crash: its name with -wal and -shm.
func Open(ctx context.Context, path string, opts ...Option) (*Journal, error) {
	path, err := filepath.Abs(path) // SQLite gives names such as :memory: and //host/file another meaning
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the caller's own file is the point
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	const settings = "?_txlock=immediate" +
		"&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+settings)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	j, err := New(ctx, db, opts...)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	j.own = true
	return j, nil
}

// New opens a journal in a database that speaks the SQL of Postgres or SQLite, such as one of the driver pgx. Close
// leaves db open. SQLite needs a busy timeout and transactions that begin as immediate, or the journal fails when
// somebody else writes, and synchronous=FULL to survive a power cut; with the driver of [Open] that is
// "file:journal?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)".
func New(ctx context.Context, db *sql.DB, opts ...Option) (*Journal, error) {
	j := &Journal{
		db: db, run: rand.Text(), lease: defaultLease, ops: make(chan *op), closed: make(chan struct{}),
		claims: map[string]*claim{}, begun: map[key]bool{},
	}
	for _, opt := range opts {
		opt(j)
	}
	if err := createTables(ctx, db); err != nil {
		return nil, fmt.Errorf("sqlpayvault: create tables: %w", err)
	}
	j.close = sync.OnceValue(j.shut)
	j.running.Go(j.work)
	return j, nil
}

// Begin records that a batch is about to be sent, as [payvault.Journal] says. The first one of a job takes the
// job's lease, and waits for it if the run that holds it may be dead.
func (j *Journal) Begin(ctx context.Context, job string, batch int) (payvault.BatchState, error) {
	if !j.shared {
		if err := j.claim(ctx, job); err != nil {
			return payvault.BatchState{}, err
		}
	}
	o := &op{key: key{job, batch}, done: make(chan struct{})}
	if !j.reserve(o.key) {
		return payvault.BatchState{}, ErrRunning
	}
	err := j.do(ctx, o)
	if err != nil || o.state.Begun {
		j.release(o.key)
	}
	return o.state, err
}

// End records what came of a batch, as [payvault.Journal] says. It needs no lease. When the database fails, such as by
// a connection that drops, it tries again for 10 s, but for a batch that was not sent: that stays of unknown outcome.
// It records the outcome of a batch that was never begun, too: by hand, look whether the name of the job is right.
func (j *Journal) End(ctx context.Context, job string, batch int, outcome payvault.BatchOutcome) error {
	if !isStatus(outcome.Status) {
		return errStatus(outcome.Status)
	}
	o := &op{key: key{job, batch}, outcome: &outcome, done: make(chan struct{})}
	defer j.release(o.key) // what cannot be recorded stays begun, and of unknown outcome
	return j.do(ctx, o)
}

func isStatus(s payvault.BatchStatus) bool {
	switch s {
	case payvault.BatchAccepted, payvault.BatchRefused, payvault.BatchUnknown, payvault.BatchNotSent:
		return true
	}
	return false
}

func errStatus(s payvault.BatchStatus) error {
	return fmt.Errorf("sqlpayvault: %q is no status of a batch", s)
}

// Close gives up the leases, and closes the file of [Open].
func (j *Journal) Close() error { return j.close() }

func (j *Journal) shut() error {
	j.mu.Lock()
	j.over = true
	j.mu.Unlock()
	close(j.closed)
	j.running.Wait()
	_, err := j.changed(context.Background(), `UPDATE payvault_jobs SET holder = '' WHERE holder = $1`, j.run)
	if j.own {
		err = errors.Join(err, j.db.Close())
	}
	return err
}

// reserve reports whether a batch is begun by nobody else with this journal.
func (j *Journal) reserve(k key) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.begun[k] {
		return false
	}
	j.begun[k] = true
	return true
}

func (j *Journal) release(k key) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.begun, k)
}
