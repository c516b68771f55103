// Package temporalpayvault runs bulk work of package payvault on Temporal. It is for work that is too much for one
// machine, or that must go on when a machine fails: card updates of tens of millions of cards, and exports of all
// customers or of the transactions of many subscriptions.
//
// [Register] gives a worker the workflows [SubmitCards] and [ExportLists] and their activities. A client starts them
// like any other workflow. [ActivityError] is for activities of your own.
//
// # Card updates
//
// An activity runs AccountUpdater.SubmitAll over a range of batches, with a [payvault.Journal] that all workers share.
// The journal has the batches that may have been sent. So no batch is sent twice, and Temporal may repeat every
// activity that fails or is lost. Heartbeats only show that a worker is alive. A batch that was in flight when its
// worker was killed is of unknown outcome: it may have been performed, and somebody has to look it up.
//
// # Secrets
//
// Cards are passed by reference and range, see [CardSource]. Histories and heartbeats hold numbers of batches, status,
// codes and the texts of the service, cleared as errors of package payvault are. They do not hold texts of a CardSource
// or a Sink, because these may quote a card. The exceptions are the message and the type of a
// [temporal.ApplicationError]. With a codec of [NewCodec], [NewConverters] encrypts all payloads.
package temporalpayvault
