#include "collectives/lowering/question.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace question_test {

Collective Asking(CollectiveKind kind, Bytes bytes, const char* protocol = "none") {
  Collective collective;
  collective.kind = kind;
  collective.communicator = CommunicatorId(0);
  collective.bytes = bytes;
  collective.protocol = ParseProtocol(protocol);
  return collective;
}

bool AreEqual(const Collective& a, const Collective& b) {
  return !(Question(a) < Question(b)) && !(Question(b) < Question(a));
}

TEST(QuestionTest, RingsOnBareLinksAreAlikeWhateverTheyCarry) {
  const Collective sum = Asking(CollectiveKind::kAllReduce, Bytes(100));
  EXPECT_TRUE(AreEqual(sum, Asking(CollectiveKind::kAllGather, Bytes(7))));
  EXPECT_FALSE(AreEqual(sum, Asking(CollectiveKind::kBroadcast, Bytes(100))));
  Collective elsewhere = sum;
  elsewhere.communicator = CommunicatorId(1);
  EXPECT_FALSE(AreEqual(sum, elsewhere));
}

TEST(QuestionTest, OthersDifferByKindAndSize) {
  const Collective sum = Asking(CollectiveKind::kAllReduce, Bytes(100), "auto");
  EXPECT_TRUE(AreEqual(sum, Asking(CollectiveKind::kAllReduce, Bytes(100), "auto")));
  EXPECT_FALSE(AreEqual(sum, Asking(CollectiveKind::kAllReduce, Bytes(7), "auto")));
  EXPECT_FALSE(AreEqual(sum, Asking(CollectiveKind::kAllGather, Bytes(100), "auto")));
}

}  // namespace question_test
}  // namespace rehearse
