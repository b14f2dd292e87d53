/** Customer profiles as a source gives them, and results bodies that hold them: the same for every contestant. */

const two = (n: number): string => String(n).padStart(2, "0")

export const profile = (n: number) => ({
  product: "customer_information",
  sub_family: "customer_information:user_profile",
  fetch_date: `2026-11-20T03:${two(n % 60)}:12.${String(n % 1000).padStart(3, "0")}Z`,
  type: "person",
  name: n % 3 === 0 ? `María José ${n}` : `Peter ${n}`,
  name_extra: `García Núñez ${n % 977}`,
  alias: null,
  identification_numbers: [
    {
      type: "es:dni",
      value: `${10_000_000 + n}X`,
      validated: true,
      country: "ES",
      valid_until: "2031-05-01",
    },
    { type: "es:ssn", value: `28${n}`, validated: false },
  ],
  birth_date: `19${40 + (n % 60)}-0${1 + (n % 9)}-1${n % 10}`,
  birth_country: "ES",
  nationality_country: "ES",
  residence_country: "ES",
  gender: n % 2 === 0 ? "female" : "male",
  civil_status: "married",
  number_of_children: n % 4,
  emails: [`person${n}@example.org`],
  phones: [`+346${10_000_000 + n}`, `+349${10_000_000 + n}`],
  addresses: [
    {
      title: "home",
      street: `Calle Mayor ${n % 200}`,
      street_extra: "3º B",
      municipality: "Madrid",
      city: "Madrid",
      state: "Madrid",
      country: "ES",
      zip_code: `28${String(n % 1000).padStart(3, "0")}`,
    },
  ],
  language: "es",
  member_since: "2011-02-03",
})

/** Rows of each table that so many profiles become. */
export const rowsOfProfiles = (profiles: number): Readonly<Record<string, number>> => ({
  customer_profiles: profiles,
  identification_numbers: 2 * profiles,
  emails: profiles,
  phones: 2 * profiles,
  addresses: profiles,
})

export const resultsBody = (profiles: ReadonlyArray<object>) => ({
  data: profiles,
  retrieved_features: ["customer_information_read"],
  is_closed: true,
})
