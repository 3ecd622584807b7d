// Golden records: what many scenarios and commands come to, as committed text that a person can
// read. A test makes the entries of a record again and compares; whatever moves shows.
//
//   REHEARSE_GOLDEN=write build/release/tests/test_golden      writes all records anew
//   REHEARSE_GOLDEN=digests build/release/tests/test_golden    prints every digest of every entry
//
// A record is tests/golden/records/NAME.txt: entries, each a line "== KEY" and the lines below it.
// Figures and words of an entry are for people. What no figure says (all of a trace, a picture, a
// table) is a digest, and digests are not for people: those of one name are one number for all
// entries, in the record's last entry. When it moves, the digests that two builds print say where.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/fnv.h"

namespace rehearse {

class GoldenRecord {
 public:
  explicit GoldenRecord(const std::string& name);

  // Whether the entry that would come next is left out, because this build has sanitizers and takes
  // ten times as long: all but one in so many are.
  bool IsLeftOut(size_t number);

  // `lines` as they are in the record, with Digest()s in them. A difference fails the test, and
  // shows both.
  void Add(const std::string& key, const std::string& lines);
  // To be called at the end: writes the record, if that was asked for; otherwise fails the test
  // where the record has entries that were not made.
  void End();

 private:
  struct Digests {
    Fnv1a all;
    Fnv1a of_few;  // of entries that builds with sanitizers make, too
  };
  // The lines without their digests, which are added up.
  std::string WithoutDigests(const std::string& key, std::string_view lines);
  void Compare(const std::string& key, const std::string& text);

  std::string path_;
  bool writes_ = false;
  bool prints_ = false;
  bool is_partial_ = false;
  bool is_of_few_ = true;  // the next entry
  int shown_ = 0;
  std::map<std::string, Digests> digests_;  // by name
  std::vector<std::pair<std::string, std::string>> made_;
  std::map<std::string, std::string> known_;
};

// Numbers with a point or an exponent and more than nine digits, to nine: what a text says for
// comparison, whatever the last bits are. Words and hexadecimal numbers stay as they are.
std::string RoundedNumbers(std::string_view text);

// A digest of that name, to stand anywhere within an entry's lines: of the text with rounded
// numbers, of bytes as they are, or of what was added to the hash.
std::string DigestOfText(std::string_view name, std::string_view text);
std::string DigestOfBytes(std::string_view name, std::string_view bytes);
std::string DigestOf(std::string_view name, const Fnv1a& hash);

// The text without what differs from run to run: seconds that simulating took, memory that it used;
// and from commit to commit: what points are kept under.
std::string WithoutCosts(std::string_view text);

}  // namespace rehearse
