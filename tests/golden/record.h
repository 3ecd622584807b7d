// Golden records: what many scenarios and commands come to, as committed text that a person can
// read. A test makes the entries of a record again and compares; whatever moves shows.
//
//   REHEARSE_GOLDEN=write build/release/tests/test_golden      writes all records anew
//
// A record is tests/golden/records/NAME.txt: entries, each a line "== KEY" and the lines below it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

class GoldenRecord {
 public:
  explicit GoldenRecord(const std::string& name);

  // Which entries a test makes under sanitizers, which take ten times as long: one in so many.
  static bool IsLeftOut(size_t number);

  // `lines` as they are in the record. A difference fails the test, and shows both.
  void Add(const std::string& key, const std::string& lines);
  // To be called at the end: writes the record, if that was asked for; otherwise fails the test
  // where the record has entries that were not made.
  void End();

 private:
  std::string path_;
  bool writes_ = false;
  bool is_partial_ = false;
  int shown_ = 0;
  std::vector<std::pair<std::string, std::string>> made_;
  std::map<std::string, std::string> known_;
};

// Numbers with a point or an exponent and more than nine digits, to nine: what a text says for
// comparison, whatever the last bits are. Words and hexadecimal numbers stay as they are.
std::string RoundedNumbers(std::string_view text);

// "1,234 bytes 89abcdef": of the text with rounded numbers.
std::string DigestOfText(std::string_view text);
// Of bytes as they are.
std::string DigestOfBytes(std::string_view bytes);

// The text without what differs from run to run: seconds that simulating took, memory that it used;
// and from commit to commit: what points are kept under.
std::string WithoutCosts(std::string_view text);

}  // namespace rehearse
