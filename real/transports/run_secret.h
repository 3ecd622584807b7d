// What all processes of one run know and nobody else: whoever connects must say it first, and until
// then nothing it says counts.
//
// It is in the environment, REHEARSE_SECRET, or in the file that REHEARSE_SECRET_FILE names, which
// only its owner may read. Ranks of one machine need neither: rank 0 leaves one in shared memory
// of mode 600 until all have come. A rank says one half of it and rank 0 the other, so that neither
// can answer with what it has just heard. Halves go over the wire unencrypted: a secret is for one
// run, on a network where nobody listens.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace rehearse {

inline constexpr size_t kShortestSecret = 16;  // characters
inline constexpr size_t kLongestSecret = 128;

using SecretHalf = std::array<char, kLongestSecret / 2>;  // zeros at its end

struct RunSecret {
  SecretHalf of_ranks{};
  SecretHalf of_rank_0{};
};

// It takes equally long wherever they differ, so that time does not tell how much was right.
bool IsSame(const SecretHalf& a, const SecretHalf& b);

// Throws Error, which begins with `source`, for a text of the wrong length.
RunSecret SplitSecret(const std::string& text, const std::string& source);

// Returns nothing if neither variable is set. Throws Error for secrets of the wrong length, and for
// a file that is not a plain file, belongs to another user, or can be read by others.
std::optional<RunSecret> SecretFromEnvironment();

// A secret that stays in this machine's shared memory as long as the object lives.
class SharedSecret {
 public:
  // `run` is a name that no other run of this user has, fit for a file. What an earlier run has
  // left under it is replaced.
  explicit SharedSecret(const std::string& run);
  ~SharedSecret();
  SharedSecret(const SharedSecret&) = delete;
  SharedSecret& operator=(const SharedSecret&) = delete;

  const RunSecret& secret() const { return secret_; }

  // What this user's rank 0 has left there; nothing as long as it has not.
  static std::optional<RunSecret> Find(const std::string& run);

 private:
  std::string name_;
  RunSecret secret_;
};

}  // namespace rehearse
