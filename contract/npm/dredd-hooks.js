// Hooks of dredd: the keys of the default seed, the form, which dredd cannot write, and no transactions for "default", which
// it expects with status 200.
const hooks = require('hooks');

const basic = (key) => 'Basic ' + Buffer.from(':' + key).toString('base64');

hooks.beforeEach((transaction, done) => {
  const answer = JSON.parse(transaction.expected.body || '{}');
  transaction.skip = answer.code === 9999 || answer.rcode === '999';
  const partner = transaction.fullPath.startsWith('/platform/application/');
  transaction.request.headers.Authorization = basic(partner ? 'partner-vendor-key' : 'merchant-api-key');
  if (transaction.fullPath.startsWith('/platform/dispute/')) {
    transaction.request.headers['Content-Type'] = 'multipart/form-data; boundary=b';
    transaction.request.body = '--b\r\nContent-Disposition: form-data; name="disputeResponse"\r\n\r\n' +
      '{"cbr_response_type":"ND"}\r\n--b--\r\n';
  }
  done();
});
