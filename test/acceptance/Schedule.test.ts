/**
 * `nightjar schedule` as an operator meets it: what it prints, what it refuses, and what it installs by way of the
 * machine's own `systemctl` and `crontab`, which stand-ins take the place of here.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { parseAllDocuments } from "yaml"
import { command } from "./BuiltCommand.ts"
import { Workplace } from "./Nightjar.ts"
import type { Ended } from "../harness/ProgramHere.ts"

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const job = (rest = 'night: { starts: "22:30", until: "07:00" }') => `name: nightly
service:
  base_url: https://\${HOST}/api
  flows_url: https://service.example/flows
  app_secret: env:APP
${rest}
timezone: Europe/Madrid
engines: [bank:website]
customers:
  - { id: one, parameters: { username: somebody, password: env:P, pin: file:secrets/one.pin } }
`

let place: Workplace
const [, started = ""] = process.argv
beforeEach(() => {
  place = new Workplace(false)
  const home = join(place.folder, "home")
  mkdirSync(home)
  const PATH = `${join(place.folder, "bin")}:/usr/bin:/bin`
  Object.assign(place.environment, { HOME: home, TZ: "Europe/Madrid", PATH })
  vi.stubEnv("XDG_CONFIG_HOME", join(home, ".config"))
  // What a process of its own would have: a timer is written for the program, folder and PATH of whoever asks for it.
  vi.stubEnv("PATH", PATH)
  vi.spyOn(process, "cwd").mockReturnValue(place.folder)
  process.argv[1] = command
  place.write("job.yaml", job())
  place.write(".env", "APP=a\nP=p\nHOST=service.example\n")
  chmodSync(join(place.folder, ".env"), 0o600)
})
afterEach(() => {
  vi.unstubAllEnvs()
  process.argv[1] = started
  place.remove()
})

/** A command that notes how it was called. */
const standIn = (name: string, script: string): void => {
  const bin = join(place.folder, "bin")
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}
const noted = (name: string): string => {
  const path = join(place.folder, name)
  return existsSync(path) ? readFileSync(path, "utf8") : ""
}
/** What a command said, without this machine's paths. */
const plainly = ({ code, stdout, stderr }: Ended) => ({
  code,
  stdout: stdout
    .replaceAll(place.folder, "DIR")
    .replaceAll(`${homedir()}/`, "HOME/")
    .replaceAll(/\S+\/nightjar\.js/g, "NIGHTJAR"),
  stderr: stderr.replaceAll(place.folder, "DIR"),
})
/** In a process of its own: its time zone matters, or the folder that a CronJob's paths are relative to. */
const scheduleThere = async (...args: ReadonlyArray<string>) =>
  plainly(await place.spawned(["schedule", "job.yaml", ...args]))
const schedule = async (...args: ReadonlyArray<string>) =>
  plainly(await place.nightjar("schedule", "job.yaml", ...args))

const refused = (id: string, line: string, afterwards: string) => ({
  code: 2,
  stdout: "",
  stderr: `nightjar: ${line} [${id}]\n${afterwards}\n`,
})

describe("a timer that is printed", () => {
  it("has the night, the paths and the variables of the job", async () => {
    const { code, stdout, stderr } = await scheduleThere("--cron", "--output", "out")
    expect([code, stderr]).toEqual([0, ""])
    expect(stdout.split("\n").find((line) => /^\d/.test(line))).toBe(
      `30 0,2,4,22 * * * umask 077 && cd DIR && { ${process.execPath} -- NIGHTJAR run DIR/job.yaml ` +
        "--wait '510 minutes' --output DIR/out --env-file DIR/.env --no-progress >>DIR/out.log 2>&1 || case $? in 3) ;; *) " +
        'echo "nightjar: the run of nightly ended with exit code $?, see "DIR/out.log ;; esac; }',
    )
  })

  it("starts several jobs of one night in one command, each with its folder's variables [decision mixed timers]", async () => {
    const timed = async (other: string, ...flags: ReadonlyArray<string>) => {
      place.write("far/other.yaml", other)
      return plainly(await place.nightjar("schedule", "job.yaml", "far/other.yaml", "--cron", ...flags))
    }
    const other = job().replace("name: nightly", "name: another").replace("user: somebody", "user: another")
    mkdirSync(join(place.folder, "far"))
    place.write("far/.env", "APP=a\nP=p\n")
    chmodSync(join(place.folder, "far/.env"), 0o600)
    expect((await timed(other)).stderr).toContain("the environment has no variable HOST")
    place.write("far/.env", "APP=a\nHOST=service.example\n")
    expect(await timed(other)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("DIR/far/.env lacks variables that the job needs: P ["),
    })
    place.write("far/.env", "APP=a\nP=p\nHOST=service.example\n")
    const { code, stdout } = await timed(other)
    expect([code, stdout.split("\n")[0], / run .* --no-progress /.exec(stdout)?.[0]]).toEqual([
      0,
      "# nightjar another.nightly: begin (written by `nightjar schedule`)",
      " run DIR/job.yaml DIR/far/other.yaml --wait '510 minutes' --output DIR/output --no-progress ",
    ])
    const differ = refused(
      "timer-nights-differ",
      "the jobs `nightly` and `another` do not run at the same times",
      "Nothing was written. Give each job its own timer: a run that finds the folder in use waits for it.",
    )
    expect(await timed(other.replace("22:30", "23:30"))).toEqual(differ)
    expect(await timed(other.replace("Europe/Madrid", "Europe/Lisbon"))).toEqual(differ)
    // A time for the one without `night`, which the other one has: to leave it out would not help.
    expect(await timed(other.replace(/^night: .*$/m, ""), "--at", "22:30")).toEqual(differ)
  })

  it("is refused for a path that would break its line, in every kind of timer", async () => {
    for (const kind of ["--cron", "--systemd", "--kubernetes"])
      expect(
        await (kind === "--kubernetes" ? scheduleThere : schedule)(kind, "--output", "o\n* * * * * evil"),
      ).toEqual(
        refused(
          "timer-text-unwritable",
          'no timer can hold "DIR/o\\n* * * * * evil": it has a control character, or a space or backslash at its end',
          "Nothing was written. Rename the file or folder, or correct the variable that names it.",
        ),
      )
    place.write("job.yaml", job().replace("file:secrets/one.pin", '"file:secrets/one\\n.pin"'))
    const { stderr } = await scheduleThere("--kubernetes")
    expect(stderr).toContain('no timer can hold "secrets/one\\n.pin"')
    place.write("job.yaml", job().replace("name: nightly", `name: ${"n".repeat(64)}`))
    expect((await scheduleThere("--kubernetes")).stderr).toContain(
      "would have a name of more than 43 characters",
    )
  })

  it("has the PATH of this shell only if the job starts programs: for a secret, or to tell somebody", async () => {
    const pathOf = async (rest: string) => {
      place.write("job.yaml", job(`night: { starts: "22:30", until: "07:00" }\n${rest}`))
      const { stdout } = await schedule("--cron")
      return / PATH=(\S+) /.exec(stdout)?.[1]?.replaceAll("'", "")
    }
    const path = "DIR/bin:/usr/bin:/bin"
    expect([
      await pathOf(""),
      await pathOf("tokens: { key: exec:cat key }"),
      await pathOf("notify: [{ command: [tell-us] }]"),
    ]).toEqual([undefined, path, path])
  })

  it("is for one kind of timer, for a time that the job or --at gives", async () => {
    const nothing = "Nothing was written."
    const one = `${nothing} Give one of --systemd, --cron and --kubernetes.`
    const kind = refused("timer-kind-missing", "no kind of timer was given, or more than one", one)
    expect([await schedule(), await schedule("--cron", "--systemd")]).toEqual([kind, kind])
    expect(await schedule("--cron", "--at", "23:00")).toEqual(
      refused(
        "timer-time-twice",
        "the job `nightly` starts at 22:30, as its `night` says, and --at gives another time",
        `${nothing} Leave --at out, or change the \`night\` of the job.`,
      ),
    )
    place.write("job.yaml", job('deadline: "07:00"'))
    expect(await schedule("--cron")).toEqual(
      refused(
        "timer-time-missing",
        "the job `nightly` does not say when it runs",
        `${nothing} Add \`night: { starts: "22:30", until: "07:00" }\` to the job, or give --at HH:MM.`,
      ),
    )
    const files = (await place.json("schedule", "job.yaml", "--systemd", "--at", "23:05")) as ReadonlyArray<{
      name: string
      text: string
    }>
    expect(files.map(({ name, text }) => [name, /^OnCalendar=.*$/m.exec(text)?.[0]])).toEqual([
      ["nightjar-nightly.timer", "OnCalendar=*-*-* 23:05:00 Europe/Madrid"],
      ["nightjar-nightly.service", undefined],
      ["nightjar-nightly-alarm.service", undefined],
    ])
    expect((await schedule("--cron", "--at", "25:00")).stderr).toContain("--at: expected")
  })

  it("is refused while the file of variables lacks one that the job needs, whatever this shell has", async () => {
    place.environment["P"] = "p"
    place.environment["HOST"] = "service.example"
    place.write(".env", "APP=a\nHOST=service.example\n")
    expect(await schedule("--systemd")).toEqual(
      refused(
        "timer-variables-missing",
        "DIR/.env lacks variables that the job needs: P",
        "Nothing was written. Add a line NAME=value for each of them: a timer does not have the variables of your shell.",
      ),
    )
    place.write("job.yaml", job("notify: [{ url: env:ALERT, on: [failed] }]"))
    place.write(".env", "APP=a\nP=p\nHOST=service.example\n")
    expect((await schedule("--systemd", "--at", "22:30")).stderr).toContain(
      "variables that the job needs: ALERT [",
    )
    place.write("job.yaml", job())
    place.write(".env", "APP=a\nP=p\n")
    const { code, stderr } = await schedule("--systemd")
    expect([code, stderr.split("\n").slice(0, 2)]).toEqual([
      2,
      [
        "DIR/job.yaml:3:13: the environment has no variable HOST, or an empty one",
        "warning: the job was checked with the variables in DIR/.env only, because a timer has none of this shell's " +
          "[timer-environment]",
      ],
    ])
  })

  it("reads systemd's credentials where systemd puts them, and cron has none", async () => {
    place.write("job.yaml", job().replace("file:secrets/one.pin", "'file:${CREDENTIALS_DIRECTORY}/pin'"))
    const { code, stdout } = await schedule("--systemd")
    expect([code, stdout.match(/^LoadCredential=.*$/gm)]).toEqual([
      0,
      ["LoadCredential=env:DIR/.env", "LoadCredential=pin:HOME/.config/credstore/pin"],
    ])
    expect(await schedule("--cron")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("the environment has no variable CREDENTIALS_DIRECTORY"),
    })
  })

  it("is for Kubernetes a CronJob with every variable and file of the job", async () => {
    const { code, stdout } = await scheduleThere("--kubernetes")
    const documents = parseAllDocuments(stdout).map((one) => JSON.stringify(one.toJS()))
    const names = [...(documents[1] ?? "").matchAll(/"key":"([^"]*)"/g)].map(([, name]) => name)
    expect([code, names]).toEqual([0, ["APP", "HOST", "P", "job.yaml", "secrets_one.pin"]])
    place.write("job.yaml", job().replace("file:secrets/one.pin", "file:/etc/one.pin"))
    expect(await scheduleThere("--kubernetes")).toEqual(
      refused(
        "timer-file-outside",
        "/etc/one.pin is outside the job's folder, and a CronJob mounts only that folder",
        "Nothing was written. Move it into the folder, and name it in the job relative to the job file.",
      ),
    )
    expect((await schedule("--kubernetes", "--install")).stderr).toContain("[timer-not-installable]")
  })

  it("has for Kubernetes what commands and `notify` name, not what every command gets, and where own schemas are", async () => {
    const rest =
      'night: { starts: "22:30", until: "07:00" }\nnotify: [{ url: env:ALERT }]\nschemas: ./own/schemas'
    place.write("job.yaml", job(rest).replace("file:secrets/one.pin", '"exec:$HOME/show $APP $OWN ${NOPE}"'))
    place.write(".env", "APP=a\nP=p\nHOST=service.example\nOWN=o\nALERT=https://alert.example/x\n")
    mkdirSync(join(place.folder, "own/schemas/records"), { recursive: true })
    const { stdout } = await scheduleThere("--kubernetes")
    const keys = [...stdout.matchAll(/ key: "([A-Z]+)"/g)].map(([, name]) => name)
    expect(keys).toEqual(["ALERT", "APP", "HOST", "OWN", "P"])
    expect(stdout).toContain("# The job has schemas of its own: mount the folder own/schemas too, ")
  })
})

describe("`--systemd --install`", () => {
  const units = "home/.config/systemd/user"

  it("writes units that only this user can read, enables them, and says how to undo that; twice is once", async () => {
    standIn("systemctl", `echo "$*" >> ${place.folder}/called`)
    const first = await schedule("--systemd", "--install")
    const again = await schedule("--systemd", "--install")
    expect(first).toEqual({
      code: 0,
      stderr: "",
      stdout: `Written:
  DIR/${units}/nightjar-nightly.timer
  DIR/${units}/nightjar-nightly.service
  DIR/${units}/nightjar-nightly-alarm.service
nightjar-nightly.timer is enabled. It runs while you are logged out only after \`loginctl enable-linger\`.
To undo: systemctl --user disable --now nightjar-nightly.timer, then delete the files above.
`,
    })
    expect(again).toEqual(first)
    const called = "--user daemon-reload\n--user enable --now nightjar-nightly.timer\n"
    expect(noted("called")).toBe(called + called)
    const files = readdirSync(join(place.folder, units))
    const modes = files.map((name) => statSync(join(place.folder, units, name)).mode & 0o777)
    expect([files.length, modes]).toEqual([3, [0o600, 0o600, 0o600]])
  })

  it("writes nothing if one of the files is somebody else's", async () => {
    standIn("systemctl", `echo "$*" >> ${place.folder}/called`)
    mkdirSync(join(place.folder, units), { recursive: true })
    place.write(`${units}/nightjar-nightly.service`, "[Unit]\n")
    expect(await schedule("--systemd", "--install")).toEqual(
      refused(
        "timer-not-ours",
        `DIR/${units}/nightjar-nightly.service was not written by nightjar`,
        "Nothing was written. Move that file away, or write the timer by hand from what is printed without --install.",
      ),
    )
    expect([readdirSync(join(place.folder, units)), noted("called")]).toEqual([
      ["nightjar-nightly.service"],
      "",
    ])
  })

  it("says which command to run if systemd does not answer", async () => {
    standIn("systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    const { code, stderr } = await schedule("--systemd", "--install")
    expect([code, stderr]).toEqual([
      2,
      "nightjar: the command `systemctl --user daemon-reload` did not succeed (exit code 1: Failed to connect to bus) " +
        "[timer-not-enabled]\nThe units were written and are not enabled. Run it yourself in a session of the user " +
        "whose timer it is. Without systemd, use --cron.\n",
    ])
  })
})

describe("`--cron --install`", () => {
  /** A crontab in a file, as the real command keeps it. */
  const crontab = () =>
    standIn(
      "crontab",
      `case $1 in
-l) cat ${place.folder}/tab 2>/dev/null || { echo "no crontab for me" >&2; exit 1; } ;;
-) cat > ${place.folder}/tab ;;
esac`,
    )

  it("adds the job's lines to the crontab, if there is one, replaces them later, and says how to undo that", async () => {
    crontab()
    await schedule("--cron", "--install")
    expect(noted("tab")).toMatch(/^# nightjar nightly: begin/)
    place.write("tab", "@daily other\n")
    const { code, stdout } = await schedule("--cron", "--install")
    const lines = noted("tab")
      .replaceAll(place.folder, "DIR")
      .replaceAll(/\S+\/nightjar\.js/g, "NIGHTJAR")
    const block = lines.slice("@daily other\n".length)
    expect([code, stdout]).toEqual([
      0,
      `The crontab now has the lines of nightly:\n${block}To undo: crontab -e, then delete these lines.\n`,
    ])
    place.write("job.yaml", job().replace("22:30", "23:30"))
    await schedule("--cron", "--install")
    const replaced = noted("tab")
      .split("\n")
      .filter((line) => /^[\d@]/.test(line))
    expect(replaced).toEqual(["@daily other", expect.stringMatching(/^30 [\d,]+ \* \* \* umask/)])
    expect(lines).not.toContain(replaced[1]?.slice(0, 20))
  })

  it("changes nothing in a crontab that it cannot read as a whole", async () => {
    const unusable = (why: string) =>
      refused(
        "crontab-unusable",
        `the command \`crontab -l\` did not succeed (${why})`,
        "The crontab was not changed. Run the command yourself to see why; where there is no cron, use --systemd.",
      )
    crontab()
    place.write("tab", `# ${"long ".repeat(250_000)}\n@daily other\n`)
    const long = noted("tab")
    expect(await schedule("--cron", "--install")).toEqual(unusable("it prints more than 1000000 bytes"))
    expect(noted("tab") === long).toBe(true)
    const latin = Buffer.from("# na\xefve\n@daily other\n", "latin1")
    writeFileSync(join(place.folder, "tab"), latin)
    expect(await schedule("--cron", "--install")).toEqual(unusable("it prints what is not UTF-8"))
    expect(readFileSync(join(place.folder, "tab"))).toEqual(latin)
  })

  it("changes nothing if cron does not answer, or if the job's lines have no end", async () => {
    crontab()
    place.write("tab", "# nightjar nightly: begin (written by `nightjar schedule`)\n@daily other\n")
    const damaged = await schedule("--cron", "--install")
    expect([damaged.code, damaged.stderr]).toEqual([
      2,
      "nightjar: the lines of the job `nightly` in the crontab have no end mark [timer-lines-damaged]\nThe crontab was " +
        "not changed. Correct them with `crontab -e`: delete them, or restore the line that ends with `: end`.\n",
    ])
    standIn("crontab", "echo 'you may not' >&2; exit 1")
    expect((await schedule("--cron", "--install")).stderr).toContain(
      "`crontab -l` did not succeed (exit code 1: you may not) [crontab-unusable]",
    )
    expect(noted("tab")).toContain("@daily other")
  })
})
