// Package sqlpayvault keeps the journal of SubmitAll of package payvault in a database. So a run that was killed can be
// continued, and no batch is sent twice. Open a [Journal] for each run, give it to SubmitAll with a Job name that
// identifies the cards, and close it after the run; see the example.
//
// [Open] keeps the journal in an SQLite file. The driver for SQLite is included. [New] keeps the journal in Postgres,
// through a driver such as github.com/jackc/pgx/v5/stdlib.
//
// # Durability
//
// When Begin or End returns without an error, its changes survive a power cut, and the end of the database's processes
// at any moment. In Postgres this holds also where a role or a database has a weaker synchronous_commit. In SQLite the
// changes are in one file, so this file may be moved or looked at. The README says which copies of it are good.
//
// The journal cannot know batches that its database never had or has lost. So cards can be sent twice if
//
//   - an older copy of the file takes its place, a dump is restored, or two copies both go on,
//   - an asynchronous standby of Postgres is promoted, because it lacks the latest commits,
//   - Postgres has fsync=off and the power fails,
//   - somebody changes the tables other than by [Journal.Resolve].
//
// # Leases
//
// A job has one run at a time, which holds the lease of the job. A second run is refused with [ErrRunning]. The lease
// of a run that was killed ends by itself, see [WithLease]; [WithLogger] logs that a run waits for this. If a run was
// frozen for longer than its lease, another run can take over the job. If the frozen run then continues, it begins no
// further batch. The other run does not send the batches that the frozen run has begun, so no batch is sent twice.
// [WithoutLease] is for jobs that several processes work on, such as the jobs of package temporalpayvault.
//
// # Tables
//
// The journal makes the tables payvault_jobs and payvault_batches if they do not exist. They contain no card data. A
// row of payvault_batches has the name of the job, the number of the batch, its status, its number of cards, and the
// answer of the service. Secrets are removed from the answer, as in the errors of package payvault. Rows stay until you
// delete them. If you delete the rows of a job, its next run sends all its cards. The row of payvault_jobs with an
// empty job is no lease: its holder is the ID of the journal. To change a row, use only [Journal.Resolve].
//
// A batch that was begun and not ended may have reached the service. A batch of status "unknown" may have reached it
// too. No run sends such a batch again. [Journal.Unresolved] lists these batches. Look each of them up at the service,
// and record the result by [Journal.Resolve]. [Journal.Jobs], [Journal.Count] and [Journal.Find] answer further
// questions, so no program needs to know the tables.
package sqlpayvault
