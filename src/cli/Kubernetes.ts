/**
 * Jobs as one CronJob for Kubernetes, with the volume of their output: pure. Values of variables and the
 * files that the jobs read come from two Secrets, which the commands in its first lines create.
 */
import { posix } from "node:path"
import { stringify } from "yaml"
import { shellWord } from "../base/ShellWord.ts"
import { argumentsOf, cronFields, timerName } from "./Timer.ts"
import type { Timer } from "./Timer.ts"

export interface ClusterJob {
  readonly timer: Timer
  /** Names of the variables that the jobs take from their environment. */
  readonly variables: ReadonlyArray<string>
  /** The job files, relative to the folder of the first. */
  readonly jobs: ReadonlyArray<string>
  /** All files that the jobs read, relative to that folder; the job files among them. */
  readonly files: ReadonlyArray<string>
  readonly image: string
  /** Folders of the jobs' own schemas, relative to that folder. */
  readonly schemas: ReadonlyArray<string>
}

const jobFolder = "/etc/nightjar"
const outputVolume = "/var/lib/nightjar"
/** The user of the image. */
const userId = 10_001
/** No longer than from one start of the night to the next. */
const startWithinSeconds = 7_200

/** Each file with its key in a Secret, which has fewer characters than a path. */
const keysOf = (files: ReadonlyArray<string>) => {
  const keys = new Set<string>()
  return files.map((path) => {
    const plain = path.replaceAll(/[^-._a-zA-Z0-9]/g, "_")
    let key = plain
    for (let number = 2; keys.has(key); number++) key = `${plain}-${number}`
    keys.add(key)
    return { key, path }
  })
}

/** Passes a signal on, and makes exit code 3 that of a job that did its work. */
const scriptOf = ({ jobs, timer }: ClusterJob): string => {
  const job_paths = jobs.map((job) => `${jobFolder}/${job}`)
  const inside = { ...timer, job_paths, output: `${outputVolume}/output` }
  const words = ["nightjar", ...argumentsOf(inside, undefined)].map(shellWord)
  const script = [
    `trap 'kill "$pid"' TERM INT`,
    `${words.join(" ")} & pid=$!`,
    `wait "$pid"; code=$?`,
    `if [ "$code" -gt 128 ] && kill -0 "$pid" 2>/dev/null; then wait "$pid"; code=$?; fi`,
    "# 3: the run is over, and its summary says who has to act.",
    `case $code in 3) exit 0 ;; *) exit "$code" ;; esac`,
    "",
  ].join("\n")
  // Kubernetes puts the value of a variable where a command says $(NAME).
  return script.split("$(").join("$$(")
}

const containerOf = (job: ClusterJob, secret: string) => ({
  name: "nightjar",
  image: job.image,
  command: ["sh", "-c", scriptOf(job)],
  env: [
    { name: "TZ", value: job.timer.timezone ?? job.timer.machine_zone },
    ...job.variables.map((name) => ({ name, valueFrom: { secretKeyRef: { name: secret, key: name } } })),
  ],
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  },
  volumeMounts: [
    { name: "job", mountPath: jobFolder, readOnly: true },
    { name: "output", mountPath: outputVolume },
    { name: "tmp", mountPath: "/tmp" },
  ],
})

const cronJobOf = (job: ClusterJob, name: string) => ({
  apiVersion: "batch/v1",
  kind: "CronJob",
  metadata: { name },
  spec: {
    // All starts of a night have the same minute.
    schedule: cronFields(job.timer.times).join(),
    timeZone: job.timer.timezone ?? job.timer.machine_zone,
    concurrencyPolicy: "Forbid",
    startingDeadlineSeconds: startWithinSeconds,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 7,
    jobTemplate: {
      spec: {
        // `run` knows what is left to do; a Pod that is started again at once would not.
        backoffLimit: 0,
        template: {
          spec: {
            restartPolicy: "Never",
            terminationGracePeriodSeconds: 30,
            securityContext: {
              runAsNonRoot: true,
              runAsUser: userId,
              runAsGroup: userId,
              fsGroup: userId,
              fsGroupChangePolicy: "OnRootMismatch",
              seccompProfile: { type: "RuntimeDefault" },
            },
            containers: [containerOf(job, `${name}-variables`)],
            volumes: [
              {
                name: "job",
                secret: {
                  secretName: `${name}-files`,
                  defaultMode: 0o400,
                  items: keysOf(job.files),
                },
              },
              { name: "output", persistentVolumeClaim: { claimName: `${name}-output` } },
              { name: "tmp", emptyDir: {} },
            ],
          },
        },
      },
    },
  },
})

const claimOf = (name: string) => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: `${name}-output` },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "20Gi" } } },
})

/** How the two Secrets are made, from the folder of the job. */
const secretsOf = ({ timer, files, variables, schemas }: ClusterJob, name: string) => {
  const from = keysOf(files).map(({ key, path }) => `--from-file=${shellWord(`${key}=${path}`)}`)
  const env = timer.env_file ?? ".env"
  return [
    "# From the job's folder, before the first run:",
    `#   kubectl create secret generic ${name}-files ${from.join(" ")}`,
    ...(variables.length === 0
      ? []
      : [
          `#   kubectl create secret generic ${name}-variables --from-env-file=${shellWord(env)}`,
          "# kubectl takes each line of that file as it is, quotation marks included.",
        ]),
    ...schemas.map((folder) => {
      const inside = posix.join(jobFolder, folder)
      return `# The job has schemas of its own: mount the folder ${folder} too, as ${inside}.`
    }),
    "# The volume has to be a disk, not a network file system: the ledger is a database.",
  ]
}

export const kubernetesText = (job: ClusterJob): string => {
  const name = `nightjar-${timerName(job.timer)}`
  const documents = [claimOf(name), cronJobOf(job, name)].map((one) =>
    stringify(one, { lineWidth: 0, aliasDuplicateObjects: false }),
  )
  return `${secretsOf(job, name).join("\n")}\n${documents.join("---\n")}`
}
