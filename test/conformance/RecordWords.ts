/** Words of records (2.7) that the reference lists and the program only passes on. */
export const customerTypes = ["person", "company", "unknown"] as const
export const genders = ["male", "female", "rather_not_say", "unknown"] as const
export const civilStatuses = ["single", "married", "divorced", "widowed", "separated", "unknown"] as const
export const identificationNumberTypes = [
  "unknown",
  "es:dni",
  "es:nie",
  "es:cif",
  "es:ssn",
  "co:cc",
  "co:ce",
  "co:nit",
  "co:ti",
] as const
export const higherEducationSubFamilies = [
  "academic_data:higher_bachelor",
  "academic_data:higher_master",
  "academic_data:higher_doctorate",
] as const
export const secondaryEducationSubFamilies = [
  "academic_data:secondary_general",
  "academic_data:secondary_vocational",
  "academic_data:professional_certification",
] as const
