/** The machine's calls that change files, each of which can be made to fail or to write less than it was asked. */
import { Effect } from "effect"
import { DurableFiles, FileCalls, machineCalls } from "../../src/base/DurableFile.ts"

export type CallName = keyof FileCalls

/** As Node says it of a call that has a descriptor. */
export const refusal = (code: "ENOSPC" | "EIO", name: CallName): Error => {
  const words = code === "ENOSPC" ? "no space left on device" : "i/o error"
  return Object.assign(new Error(`${code}: ${words}, ${name}`), { code })
}

export interface Faults {
  /** The error of the call that is the `nth` of all; undefined lets it through. */
  readonly refuse?: (name: CallName, nth: number) => Error | undefined
  /** The most that one write takes. */
  readonly writeBytesMax?: number
}

export const faultyCalls = ({ refuse = () => undefined, writeBytesMax }: Faults) => {
  const done: Array<CallName> = []
  const judge = (name: CallName): Error | undefined => refuse(name, done.push(name))
  const through =
    <A extends ReadonlyArray<unknown>, B>(name: CallName, call: (...all: A) => B) =>
    (...all: A): B => {
      const refused = judge(name)
      if (refused !== undefined) throw refused
      return call(...all)
    }
  const machine = machineCalls
  const calls: FileCalls = {
    open: through("open", machine.open),
    write: through("write", (descriptor, bytes, from) =>
      machine.write(
        descriptor,
        writeBytesMax === undefined ? bytes : bytes.subarray(0, from + writeBytesMax),
        from,
      ),
    ),
    sync: through("sync", machine.sync),
    syncData: (descriptor, fulfil) => {
      const refused = judge("syncData")
      if (refused === undefined) machine.syncData(descriptor, fulfil)
      else fulfil(refused)
    },
    setMode: through("setMode", machine.setMode),
    cut: through("cut", machine.cut),
    close: through("close", machine.close),
    rename: through("rename", machine.rename),
    link: through("link", machine.link),
    symlink: through("symlink", machine.symlink),
    copy: through("copy", machine.copy),
    remove: through("remove", machine.remove),
    makeFolder: through("makeFolder", machine.makeFolder),
  }
  return { calls, files: new DurableFiles(calls), done }
}

/** The `failing`th call and all after it are refused; by default with EIO. */
export const refusingFrom = (failing: number, code: "ENOSPC" | "EIO" = "EIO") =>
  faultyCalls({ refuse: (name, nth) => (nth >= failing ? refusal(code, name) : undefined) })

/** Whatever writes inside writes through these calls. */
export const withCalls = (calls: FileCalls) => Effect.provideService(FileCalls, calls)
