/**
 * The timers of a job: which moments of a night, and the files for systemd, cron and Kubernetes, judged by the tools
 * that read them and compared as a whole.
 */
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Cron, Result } from "effect"
import { describe, expect, it } from "vitest"
import { parseAllDocuments } from "yaml"
import { shellWord } from "../../src/base/Text.ts"
import {
  cronBlock,
  cronFields,
  isWritable,
  kubernetesText,
  startsOf,
  systemdUnits,
  timerName,
  timesElsewhere,
  waitMinutesOf,
  withBlock,
  withoutGap,
} from "../../src/cli/Timers.ts"
import type { Timer } from "../../src/cli/Timers.ts"
import { freshFolders } from "../harness/Folder.ts"

const aFolder = freshFolders()

const timer: Timer = {
  jobs: ["nightly"],
  job_paths: ["/srv/jobs/nightly.yaml"],
  output: "/srv/output",
  env_file: "/srv/jobs/.env",
  folder: "/srv",
  command: ["/usr/bin/node", "/opt/nightjar/dist/nightjar.js"],
  path: undefined,
  credentials: [],
  times: ["22:30", "00:30"],
  hasNight: true,
  waitMinutes: 510,
  timezone: "Europe/Madrid",
  machine_zone: "Europe/Madrid",
}
/** Everything that needs care in some file. */
const odd: Timer = {
  ...timer,
  job_paths: [`/srv/it's 100% "$HOME"/n.yaml`],
  output: "/srv/out put",
  path: "/usr/bin:/opt/a b:/opt/$HOME/50%",
  credentials: ["pin"],
}
const surroundings = { envFileBytes: 100, home: "/home/me" }
const winter = Date.UTC(2026, 0, 15)

describe("the starts of a night", () => {
  it("are its beginning and every two hours after it while an hour of it is left", () => {
    expect(startsOf({ starts: "22:30", until: "07:00" })).toEqual(["22:30", "00:30", "02:30", "04:30"])
    expect(startsOf({ starts: "22:30", until: "07:30" }).slice(4)).toEqual(["06:30"])
    expect(startsOf({ starts: "01:00", until: "03:59" })).toEqual(["01:00"])
    expect(startsOf({ starts: "01:00", until: "01:10" })).toEqual(["01:00"])
    expect(startsOf({ starts: "12:00", until: "12:00" })).toHaveLength(12)
  })

  it("are at two times in a zone whose clocks change on other days, and at one in the same zone", () => {
    const at = (from: string, to: string) => timesElsewhere("22:30", { from, to, now: winter })
    expect(at("Europe/Madrid", "UTC")).toEqual(["20:30", "21:30"])
    expect(at("Europe/Madrid", "Europe/Berlin")).toEqual(["22:30"])
    expect(at("Asia/Kolkata", "UTC")).toEqual(["17:00"])
    expect(at("Europe/Madrid", "America/New_York")).toEqual(["16:30", "17:30"])
    expect(timesElsewhere("02:30", { from: "Europe/Madrid", to: "Europe/Madrid", now: winter })).toEqual([
      "02:30",
    ])
  })
})

it("[exit timers skipped] a first start that the clocks skip on a day has a second one an hour later", () => {
  const of = (zone: string, ...times: ReadonlyArray<string>) => withoutGap(times, zone, winter)
  expect([
    of("Europe/Madrid", "02:00"),
    of("Europe/Madrid", "02:30", "04:30"),
    of("Europe/Madrid", "03:00"),
    of("Europe/Madrid", "22:30", "00:30", "02:30", "04:30"),
    of("Atlantic/Azores", "00:30"),
    of("UTC", "02:30"),
  ]).toEqual([
    ["02:00", "03:00"],
    ["02:30", "03:30", "04:30"],
    ["03:00"],
    ["22:30", "00:30", "02:30", "04:30"],
    ["00:30", "01:30"],
    ["02:30"],
  ])
})

it("the wait of a start for the folder is as long as the night: to its end, or to the deadline, or eight hours", () => {
  const night = { starts: "22:30", until: "07:00" }
  expect([
    waitMinutesOf("22:30", { night, deadline: "05:00" }),
    waitMinutesOf("22:30", { deadline: "05:00" }),
    waitMinutesOf("12:00", { night: { starts: "12:00", until: "12:00" } }),
    waitMinutesOf("22:30", {}),
  ]).toEqual([510, 390, 1_440, 480])
})

describe("a timer of several jobs", () => {
  const two: Timer = { ...timer, jobs: ["a", "b-c"], job_paths: ["/srv/b.yaml", "/srv/a.yaml"] }

  it("starts them in one command, and no other timer has its name or its lines", () => {
    const block = cronBlock(two, winter)
    expect(block).toContain(
      "nightjar.js run /srv/b.yaml /srv/a.yaml --wait '510 minutes' --output /srv/output ",
    )
    expect(block).toContain('"nightjar: the runs of a, b-c ended with exit code $?')
    expect(block.split("\n")[0]).toBe("# nightjar a.b-c: begin (written by `nightjar schedule`)")
    expect(withBlock(cronBlock({ ...two, jobs: ["a"] }, winter), timerName(two), block)).toContain(
      "# nightjar a: ",
    )
    expect(systemdUnits(two, surroundings).map(({ name }) => name)).toEqual([
      "nightjar-a.b-c.timer",
      "nightjar-a.b-c.service",
      "nightjar-a.b-c-alarm.service",
    ])
  })
})

it("a text [exit timers text] has a place in a timer unless it breaks a line, or the end of a line", () => {
  const fine = ['/srv/it\'s 100% "$HOME"\\a/é', "/srv/out put"]
  const bad = "/a\nb|/a\r|/a\tb|/a\u0000|/a\u007f|/a\u0085b|/a\u2028b|/a |/a\\| /a".split("|")
  expect([fine.filter(isWritable), bad.filter(isWritable)]).toEqual([fine, []])
})

describe("cron lines", () => {
  it("are these, for a job in the machine's zone", () => {
    expect(cronBlock(timer, winter)).toBe(`# nightjar nightly: begin (written by \`nightjar schedule\`)
# 22:30, 00:30 in Europe/Madrid.
# After the first of them, a run finishes what was cut off, and otherwise does nothing.
# Exit codes 0 and 3 print nothing, so cron mails only failures.
30 0,22 * * * umask 077 && cd /srv && { /usr/bin/node /opt/nightjar/dist/nightjar.js run \
/srv/jobs/nightly.yaml --wait '510 minutes' --output /srv/output --env-file /srv/jobs/.env --no-progress >>/srv/output.log 2>&1 || \
case $? in 3) ;; *) echo "nightjar: the run of nightly ended with exit code $?, see "/srv/output.log ;; esac; }
# nightjar nightly: end
`)
  })

  it("start a job of another zone at its own times in summer and in winter", () => {
    const block = cronBlock({ ...timer, machine_zone: "UTC" }, winter)
    const [fields = ""] = block.split("\n").filter((line) => /^\d/.test(line))
    const cron = Result.getOrThrow(Cron.parse(fields.split(" ").slice(0, 5).join(" "), "UTC"))
    const hours = (from: string) => {
      const next = Cron.sequence(cron, new Date(from))
      return Array.from({ length: 6 }, () => {
        const { value } = next.next() as { readonly value: Date }
        return new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Madrid", timeStyle: "short" }).format(
          value,
        )
      })
    }
    expect([hours("2026-01-15T12:00:00Z"), hours("2026-07-15T12:00:00Z")]).toEqual([
      ["21:30", "22:30", "23:30", "00:30", "21:30", "22:30"],
      ["22:30", "23:30", "00:30", "01:30", "22:30", "23:30"],
    ])
  })

  it("[exit timers other zone] say what a start an hour away is, for jobs with a `night` and without", () => {
    const told = (hasNight: boolean) =>
      cronBlock({ ...timer, hasNight, machine_zone: "UTC" }, winter).match(/^# .*half of the year.*$/gm)
    expect([true, false].map(told)).toEqual([
      ["# In the other half of the year, the first of them is a late run of the night before."],
      [
        "# Without `night`, the first of them on a date is its run: for half of the year an hour early or late.",
      ],
    ])
  })

  it("hold every word and path in a shell, and print nothing for the exit codes 0 and 3", () => {
    const folder = aFolder()
    const program = join(folder, "fake nightjar")
    writeFileSync(program, 'printf "%s\\n" "$PATH" "$@"; exit "$CODE"\n', { mode: 0o755 })
    const output = join(folder, "50% it's")
    const command = ["/bin/sh", program]
    const block = cronBlock({ ...odd, folder, output, command, env_file: undefined }, winter)
    const line = block.split("\n").find((one) => /^\d/.test(one)) ?? ""
    // What cron does to a line: five fields, and a percent sign that is escaped.
    const text = line.split(" ").slice(5).join(" ").replaceAll("\\%", "%")
    const runs = ["0", "3", "4", "5"].map((CODE) => {
      const { stdout, stderr, status } = spawnSync("sh", ["-c", text], { env: { CODE }, encoding: "utf8" })
      return [stdout, stderr, status]
    })
    const told = (code: number) =>
      `nightjar: the run of nightly ended with exit code ${code}, see ${output}.log\n`
    expect(runs).toEqual([
      ["", "", 0],
      ["", "", 0],
      [told(4), "", 0],
      [told(5), "", 0],
    ])
    const log = spawnSync("cat", [`${output}.log`], { encoding: "utf8" })
      .stdout.split("\n")
      .slice(0, 8)
    expect(log).toEqual([
      odd.path,
      "run",
      ...odd.job_paths,
      "--wait",
      "510 minutes",
      "--output",
      output,
      "--no-progress",
    ])
  })

  it("replace the job's own lines in a crontab and leave every other line as it was", () => {
    const block = cronBlock(timer, winter)
    const other = cronBlock({ ...timer, jobs: ["other"] }, winter)
    expect(withBlock("", "nightly", block)).toBe(block)
    expect(withBlock("@daily x", "nightly", block)).toBe(`@daily x\n${block}`)
    const newer = cronBlock({ ...timer, times: ["23:00"] }, winter)
    const whole = `MAILTO=me\n${other}${block}@daily x\n`
    expect(withBlock(whole, "nightly", newer)).toBe(`MAILTO=me\n${other}${newer}@daily x\n`)
    expect(withBlock(block.replace("# nightjar nightly: end\n", ""), "nightly", newer)).toBeUndefined()
    expect(withBlock("# nightjar nightly: end\n", "nightly", newer)).toBeUndefined()
  })

  it("have one field of hours for each minute", () => {
    expect(cronFields(["22:30", "00:30", "17:00", "22:30"])).toEqual(["30 0,22 * * *", "0 17 * * *"])
    expect(shellWord("a b")).toBe("'a b'")
  })
})

const names = ["nightjar-nightly.timer", "nightjar-nightly.service", "nightjar-nightly-alarm.service"]
const mark = "# Written by `nightjar schedule`; changes are lost when it writes the file again."

describe("units for systemd", () => {
  it("[exit timers] are these, and 3 is no failure, but 5 is", () => {
    const units = systemdUnits({ ...timer, credentials: ["pin"], path: "/usr/bin" }, surroundings)
    expect(units.map(({ name }) => name)).toEqual(names)
    expect(units.map(({ text }) => text)).toEqual([
      `${mark}
[Unit]
Description=Nightjar: when it starts the run of nightly

[Timer]
# The night, and further starts in it: they finish what was cut off, and otherwise do nothing.
OnCalendar=*-*-* 22:30:00 Europe/Madrid
OnCalendar=*-*-* 00:30:00 Europe/Madrid
# If the machine was off, the night starts as soon as it is on again.
Persistent=true

[Install]
WantedBy=timers.target
`,
      `${mark}
[Unit]
Description=Nightjar: the run of nightly
OnFailure=nightjar-nightly-alarm.service

[Service]
Type=oneshot
WorkingDirectory=/srv
ExecStart=/usr/bin/node /opt/nightjar/dist/nightjar.js run /srv/jobs/nightly.yaml --wait "510 minutes" \
--output /srv/output --no-progress --env-file %d/env
# 3: the run is over, and its summary says who has to act. Anything else but 0 raises the alarm:
# 4 leaves work for the next start, 5 is a night that did not happen, 1, 2 and 6 need you.
SuccessExitStatus=3
# A run that is told to stop saves its state within 20 seconds; the next start resumes it.
TimeoutStopSec=30
UMask=0077
Environment=PATH=/usr/bin
LoadCredential=env:/srv/jobs/.env
LoadCredential=pin:/home/me/.config/credstore/pin
`,
      `${mark}
[Unit]
Description=Nightjar: the alarm of the run of nightly

[Service]
Type=oneshot
# An error in the journal. Run here what reaches you: a mail, a message, a pager.
ExecStart=/usr/bin/systemd-cat -p err -t nightjar echo "nightjar: the run of nightly failed; journalctl --user \
-u nightjar-nightly.service says why"
`,
    ])
  })

  it("keep every sign of a path: doubled where systemd would expand it, and as it is where not", () => {
    const lines = systemdUnits({ ...odd, folder: "/srv/50%", credentials: ["5%"] }, surroundings)[1]?.text
    expect(lines?.match(/^(?:WorkingDirectory|ExecStart|Environment|LoadCredential)=.*$/gm)).toEqual([
      "WorkingDirectory=/srv/50%%",
      `ExecStart=/usr/bin/node /opt/nightjar/dist/nightjar.js run "/srv/it's 100%% \\"$$HOME\\"/n.yaml" ` +
        '--wait "510 minutes" --output "/srv/out put" --no-progress --env-file %d/env',
      'Environment="PATH=/usr/bin:/opt/a b:/opt/$HOME/50%%"',
      "LoadCredential=env:/srv/jobs/.env",
      "LoadCredential=5%%:/home/me/.config/credstore/5%%",
    ])
  })

  it("name a file of variables that is too large for a credential by its path", () => {
    const large = { ...surroundings, envFileBytes: 1_000_001 }
    const [, service] = systemdUnits(timer, large)
    expect(service?.text.match(/^(?:ExecStart|LoadCredential)=.*$/gm)).toEqual([
      'ExecStart=/usr/bin/node /opt/nightjar/dist/nightjar.js run /srv/jobs/nightly.yaml --wait "510 minutes" --output /srv/output ' +
        "--no-progress --env-file /srv/jobs/.env",
    ])
  })

  const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0
  it.skipIf(!hasSystemd)("pass `systemd-analyze verify` without a word, whatever the paths contain", () => {
    const folder = aFolder()
    const node = { command: [process.execPath, "/opt/nightjar.js"], folder }
    const verify = (one: Timer) => {
      for (const { name, text } of systemdUnits(one, surroundings)) writeFileSync(join(folder, name), text)
      const paths = names.map((name) => join(folder, name))
      const { status, stderr } = spawnSync("systemd-analyze", ["verify", ...paths], { encoding: "utf8" })
      return { status, stderr }
    }
    const well = { status: 0, stderr: "" }
    expect([verify({ ...timer, ...node }), verify({ ...odd, ...node })]).toEqual([well, well])
  })
})

describe("a CronJob", () => {
  const cluster = {
    timer: { ...timer, timezone: undefined, machine_zone: "Europe/Lisbon" },
    variables: ["APP", "PASSWORD"],
    jobs: ["nightly.yaml"],
    files: ["nightly.yaml", "secrets/it's.pin"],
    image: "nightjar:1.2.3",
    schemas: ["schemas"],
  }
  const text = kubernetesText(cluster)
  const secret = (name: string) => ({
    name,
    valueFrom: { secretKeyRef: { name: "nightjar-nightly-variables", key: name } },
  })

  it("says first how its Secrets are made", () => {
    expect(text.split("\n").filter((line) => line.startsWith("#"))).toEqual([
      "# From the job's folder, before the first run:",
      "#   kubectl create secret generic nightjar-nightly-files --from-file=nightly.yaml=nightly.yaml " +
        "--from-file='secrets_it_s.pin=secrets/it'\\''s.pin'",
      "#   kubectl create secret generic nightjar-nightly-variables --from-env-file=/srv/jobs/.env",
      "# kubectl takes each line of that file as it is, quotation marks included.",
      "# The job has schemas of its own: mount the folder schemas too, as /etc/nightjar/schemas.",
      "# The volume has to be a disk, not a network file system: the ledger is a database.",
    ])
  })

  it("starts several jobs, and leaves what looks like a variable of Kubernetes as it is", () => {
    const paths = ["b.yaml", "$(APP)/a.yaml"]
    const [, cronJob] = parseAllDocuments(kubernetesText({ ...cluster, jobs: paths, files: paths })).map(
      (one) => one.toJS() as Record<string, unknown>,
    )
    const { containers } = podOf(cronJob) as { containers: [{ command: ReadonlyArray<string> }] }
    expect(containers[0].command[2]).toContain(
      "nightjar run /etc/nightjar/b.yaml '/etc/nightjar/$$(APP)/a.yaml' --wait ",
    )
  })

  it("gives each file a key of its own", () => {
    const alike = kubernetesText({ ...cluster, files: ["a_b", "a/b", "a b"] })
    const [, cronJob] = parseAllDocuments(alike).map((one) => one.toJS() as Record<string, unknown>)
    const { volumes } = podOf(cronJob) as { volumes: ReadonlyArray<{ secret?: { items: unknown } }> }
    expect(volumes[0]?.secret?.items).toEqual([
      { key: "a_b", path: "a_b" },
      { key: "a_b-2", path: "a/b" },
      { key: "a_b-3", path: "a b" },
    ])
  })

  it("is a volume for the output and this job, as a YAML parser reads them", () => {
    const [claim, cronJob] = parseAllDocuments(text, { strict: true }).map((one) => {
      expect([...one.errors, ...one.warnings]).toEqual([])
      return one.toJS() as Record<string, unknown>
    })
    expect(claim).toEqual({
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "nightjar-nightly-output" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "20Gi" } } },
    })
    expect(cronJob).toEqual({
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "nightjar-nightly" },
      spec: {
        schedule: "30 0,22 * * *",
        timeZone: "Europe/Lisbon",
        concurrencyPolicy: "Forbid",
        startingDeadlineSeconds: 7_200,
        successfulJobsHistoryLimit: 3,
        failedJobsHistoryLimit: 7,
        jobTemplate: { spec: { backoffLimit: 0, template: { spec: expect.anything() } } },
      },
    })
    expect(podOf(cronJob)).toEqual({
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 30,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 10_001,
        runAsGroup: 10_001,
        fsGroup: 10_001,
        fsGroupChangePolicy: "OnRootMismatch",
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          name: "nightjar",
          image: "nightjar:1.2.3",
          command: [
            "sh",
            "-c",
            expect.stringContaining("nightjar run /etc/nightjar/nightly.yaml --wait '510 minutes' --output"),
          ],
          env: [{ name: "TZ", value: "Europe/Lisbon" }, secret("APP"), secret("PASSWORD")],
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
          volumeMounts: [
            { name: "job", mountPath: "/etc/nightjar", readOnly: true },
            { name: "output", mountPath: "/var/lib/nightjar" },
            { name: "tmp", mountPath: "/tmp" },
          ],
        },
      ],
      volumes: [
        {
          name: "job",
          secret: {
            secretName: "nightjar-nightly-files",
            defaultMode: 0o400,
            items: [
              { key: "nightly.yaml", path: "nightly.yaml" },
              { key: "secrets_it_s.pin", path: "secrets/it's.pin" },
            ],
          },
        },
        { name: "output", persistentVolumeClaim: { claimName: "nightjar-nightly-output" } },
        { name: "tmp", emptyDir: {} },
      ],
    })
  })

  it("ends with the run's exit code, except for 3, and passes a signal on to the run", () => {
    const folder = aFolder()
    const fake =
      '#!/bin/sh\ntrap "exit 143" TERM\n[ "$CODE" = slow ] && while kill "$PPID"; do sleep 0.05; done\nexit "$CODE"\n'
    writeFileSync(join(folder, "nightjar"), fake, { mode: 0o755 })
    const [, cronJob] = parseAllDocuments(text).map((one) => one.toJS() as Record<string, unknown>)
    const [{ command }] = (podOf(cronJob) as { containers: [{ command: [string, string, string] }] })
      .containers
    const PATH = `${folder}:${process.env["PATH"]}`
    const codes = ["0", "2", "3", "4", "5", "6", "143", "slow"].map(
      (CODE) => spawnSync(command[0], command.slice(1), { env: { PATH, CODE } }).status,
    )
    expect(codes).toEqual([0, 2, 0, 4, 5, 6, 143, 143])
  })
})

const podOf = (cronJob: unknown): unknown =>
  (cronJob as { spec: { jobTemplate: { spec: { template: { spec: unknown } } } } }).spec.jobTemplate.spec
    .template.spec
