// Admin calls.
"use strict";

const { ConfigResourceTypes } = require("kafkajs");
const { code, kafka, until, using } = require("./client");
const { consume } = require("./groups");

const ALREADY_EXISTS = 36;

// A verb of an admin client, which is connected for it alone.
function withAdmin(verb) {
  return (bootstrap, given, tell) => using(kafka(bootstrap).admin(), (admin) => verb(admin, given, tell, bootstrap));
}

async function partitions(admin, topic) {
  return (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length;
}

async function topics(admin, given, tell) {
  const wanted = { topics: [{ topic: given.topic, numPartitions: given.partitions, replicationFactor: 1 }] };
  const listed = async () => (await admin.listTopics()).includes(given.topic);
  const remove = () => code(() => admin.deleteTopics({ topics: [given.topic] }));
  tell({ created: (await admin.createTopics(wanted)) ? 0 : ALREADY_EXISTS });
  // The library takes this error for the answer "no".
  tell({ "created again": (await admin.createTopics(wanted)) ? 0 : ALREADY_EXISTS });
  tell({ listed: await until(true, listed) });
  tell({ partitions: await partitions(admin, given.topic) });
  tell({ deleted: await remove() });
  tell({ listed: await until(false, listed) });
  tell({ "deleted again": await remove() });
}

async function create_partitions(admin, given, tell) {
  const wanted = { topicPartitions: [{ topic: given.topic, count: given.partitions }] };
  tell({ error: await code(() => admin.createPartitions(wanted)) });
  tell({ partitions: await until(given.partitions, () => partitions(admin, given.topic)) });
  tell({ error: await code(() => admin.createPartitions(wanted)) });
}

async function configs(admin, type, name, ...configNames) {
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type, name, configNames }] });
  return Object.fromEntries(resources[0].configEntries.map(({ configName, configValue }) => [configName, configValue]));
}

async function topic_configs(admin, given, tell) {
  tell(await configs(admin, ConfigResourceTypes.TOPIC, given.topic, "retention.ms", "cleanup.policy"));
}

async function broker_configs(admin, given, tell) {
  const { brokers } = await admin.describeCluster();
  tell(await configs(admin, ConfigResourceTypes.BROKER, String(brokers[0].nodeId), "message.max.bytes"));
}

async function alter_configs(admin, given, tell) {
  const configEntries = [{ name: "retention.ms", value: "5000" }];
  await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: given.topic, configEntries }] });
  const ask = async () => (await configs(admin, ConfigResourceTypes.TOPIC, given.topic, "retention.ms"))["retention.ms"];
  tell({ "retention.ms": await until("5000", ask) });
}

// The library tells no low watermark, so it is asked for; and it must have asked about the topic before it deletes.
async function delete_records(admin, given, tell) {
  await admin.fetchTopicOffsets(given.topic);
  await admin.deleteTopicRecords({ topic: given.topic, partitions: [{ partition: 0, offset: String(given.count) }] });
  const [{ low }] = await admin.fetchTopicOffsets(given.topic);
  tell({ low_watermark: Number(low) });
  tell({ earliest: Number(low) });
}

async function list_offsets(admin, given, tell) {
  const [{ low, high }] = await admin.fetchTopicOffsets(given.topic);
  const [{ offset }] = await admin.fetchTopicOffsetsByTimestamp(given.topic, given.count);
  tell({ earliest: Number(low), latest: Number(high), by_timestamp: Number(offset) });
}

// Does one thing while the group has a member, which has committed offset 3, and one when it has left.
function live(during, after) {
  return withAdmin(async (admin, given, tell, bootstrap) => {
    const rest = async (consumer) => {
      await consumer.commitOffsets([{ topic: given.topic, partition: 0, offset: "3" }]);
      await during(admin, given, tell);
    };
    await consume(bootstrap, given, { groupId: given.group }, 1, () => {}, rest);
    await after(admin, given, tell);
  });
}

async function nothing() {}

async function listGroups(admin, given, tell) {
  const { groups } = await admin.listGroups();
  tell({ listed: groups.some(({ groupId }) => groupId === given.group) });
}

async function describeGroup(admin, given, tell) {
  const [{ state, members }] = (await admin.describeGroups([given.group])).groups;
  tell({ state, members: members.length });
}

function remove(admin, given) {
  return code(() => admin.deleteGroups([given.group]));
}

async function deleteLive(admin, given, tell) {
  tell({ "while it has a member": await remove(admin, given) });
}

async function deleteEmpty(admin, given, tell) {
  tell({ "while it is empty": await remove(admin, given) });
  tell({ "once it is gone": await remove(admin, given) });
}

async function listGroupOffsets(admin, given, tell) {
  const [{ partitions }] = await admin.fetchOffsets({ groupId: given.group, topics: [given.topic] });
  tell({ offset: Number(partitions[0].offset) });
}

async function alterGroupOffsets(admin, given, tell) {
  await admin.setOffsets({ groupId: given.group, topic: given.topic, partitions: [{ partition: 0, offset: "7" }] });
  await listGroupOffsets(admin, given, tell);
}

async function cluster(admin, given, tell) {
  const { brokers, controller, clusterId } = await admin.describeCluster();
  tell({ nodes: brokers.length, controller: brokers.some(({ nodeId }) => nodeId === controller), id: Boolean(clusterId) });
}

module.exports = {
  topics: withAdmin(topics),
  create_partitions: withAdmin(create_partitions),
  topic_configs: withAdmin(topic_configs),
  broker_configs: withAdmin(broker_configs),
  alter_configs: withAdmin(alter_configs),
  delete_records: withAdmin(delete_records),
  list_offsets: withAdmin(list_offsets),
  list_groups: live(listGroups, nothing),
  describe_group: live(describeGroup, describeGroup),
  delete_group: live(deleteLive, deleteEmpty),
  list_group_offsets: live(listGroupOffsets, nothing),
  alter_group_offsets: live(nothing, alterGroupOffsets),
  cluster: withAdmin(cluster),
};
