/**
 * The job file that `nightjar init` writes: every key, with its default and a few words on what it does. It
 * loads as it is; anything that would start something a new user does not have is commented out.
 */

export const jobTemplate = `# yaml-language-server: $schema=../schemas/job.schema.json
# A job names the customers, engines and features to extract, and the service to use.
# \`nightjar validate\` checks it, \`nightjar plan\` shows what it would do, \`nightjar run\` does it.

name: nightly-spain                     # a-z, 0-9 and -; every run_id begins with it

# Or \`service: sandbox\`, or \`service: { sandbox: { seed: 7, speed: 300, faults: faults.yaml } }\`: the
# embedded service, nothing to install. NIGHTJAR_BASE_URL, NIGHTJAR_FLOWS_URL and NIGHTJAR_APP_SECRET override
# the values below.
service:
  base_url: https://service.example/api
  flows_url: https://service.example/flows
  app_secret: env:SERVICE_APP_SECRET    # env:NAME, file:PATH or exec:COMMAND; a literal is refused
  # attachments_url: https://files.service.example   # if it is not flows_url
  # accept_any_certificate: true        # sends the secret and logins to whoever answers: for tests only

execution:
  customer_interaction_available: false # the only allowed value: at night nobody can answer
  execution_timeout: 20 minutes         # limit for active processing, 60 to 1200 seconds
  unlock_protected_data: false
  max_wait: 3.5 hours                   # from acceptance to closed; after that, it is aborted

concurrency: { max_in_flight: 100, per_engine: 20 }
polling: { min: 2 seconds, max: 1 minute }
retry: { max_attempts: 3, base: 30 seconds, max: 15 minutes }
flow_results: { enabled: true, min_interval: 5 seconds, wait_final: 10 minutes, attachments: true }

night: { starts: "22:30", until: "07:00" } # one run for each night, which keeps its date after midnight
# deadline: "05:00"                     # nothing is started after it; default: when the night ends
# on_deadline: carry                    # abort: also starts what will probably not finish by then
# after: [other-job]   # given together with it, this job starts once that one is over
# min_customers: { number: 100, of_last_night: 90% }   # with fewer customers nothing is started
# notify:                               # no customer data is sent; addresses are secrets
#   - { on: [failed, late, new_trouble, recovered], url: env:ALERT_URL }     # format: slack sends { text }
#   - { on: [failed], email: env:SMTP, from: night@example.org, to: [ops@example.org] }
#   - { ping: env:HEALTHCHECK_URL }     # at the beginning and the end of each run
timezone: Europe/Madrid                 # for night, deadline and run dates; default: the machine's
after_export: delete                    # delete | keep: executions at the service, once published here
# group: analysts may read what is published; by_name: copies of documents in documents/<customer>/, too
output: { share: none, documents: by_hash }
# models: ./models                      # *.sql: your own views of every published version
# gates:                               # a new version that does not pass is kept aside: exit code 3
#   rows: { min: 50% }                  # of the median of the nights before, for each table
#   rejected: 5%                        # of the records at most
#   coverage: 80%                       # of customers, engines and features at least
#   tests: ./tests                      # *.sql, each a query without rows if all is well
# publish: { every: 10 minutes }        # while a run goes on, what is over is published; default: at its end
exit_on: any                            # any | new: new ends with 0 if all trouble was there the night before
# retain: { landing: 90 days, attachments: 400 days, logs: 30 days }   # default: kept, and 3 snapshots
#   compress: 7 days                    # landed bodies, once their run ended so long ago
#   compact: 35 days                    # one Parquet file a month, once the month ended so long ago

engines:
  - reference: es-tax-agency:website
    configurations: {}                  # engine settings, if its form declares any
    hooks_extra_data: {}                # sent as they are; never secrets
    features:                           # default: the engine's own
      - customer_information_read
      - code: yearly_individual_tax
        configurations: { last_n_years: 5 }

customers:
  # An id is your own and contains no personal data. \${NAME} is replaced with that environment variable.
  - id: c-0001
    parameters: { username: env:C0001_USER, password: env:C0001_PASSWORD }   # for each engine, unless:
    tokenized_access: false             # true: ask for a ticket and keep the token (needs \`tokens\`)
    engines:                            # default: every engine of the job
      - es-tax-agency:website
      - reference: es-social-security:website
        parameters: { nif: env:C0001_NIF, pin: file:secrets/c0001.pin }
        features: [labor_check]
      - reference: es-bank:api
        token: c0001-bank               # a stored token instead of parameters
  # csv, parquet or ndjson: columns customer_id, engine_reference (optional) and one per parameter
  # Cells are sent as they are, except in columns that hold references (env:NAME or file:PATH)
  # - { from: customers.csv, references: [password] }   # features_column, token_column: a row's own

# A folder beside this file: each results/NAME.yaml defines a results source; \`flow_results.yaml\` and
# \`profile.yaml\` change the built-in sources with these names, any other file adds a source. Each
# records/NAME.yaml is a record schema: it replaces the program's for the same table, or adds one.
# schemas: ./schemas

# Tables for records that the reference does not show, as the embedded service gives them: by name, or \`all\`
# that the features feed. On another service they fit only if its records happen to look the same.
# record_schemas: [accounts, cards]

tokens: { key: env:NIGHTJAR_TOKEN_KEY } # opens the encrypted token store

# Flow sessions that customers ran themselves: they are only read.
# sessions:
#   - { id: 65f0c0ffee65f0c0ffee65f0, customer: c-0007 }   # or a bare id
`
