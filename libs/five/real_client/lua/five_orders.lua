-- Unit orders: runs one action of an action file on a bot. The names are those of the JSON form of Valve's
-- CMsgBotWorldState.Action. `run(bot, action)` returns nil, or the reason why the order was refused.

local NO_HANDLE = 4294967295
-- Items that are used on the nearest tree, and how far a hero walks to it.
local TREE_ITEMS = {item_tango = true, item_tango_single = true, item_quelling_blade = true, item_bfury = true}
local TREE_REACH = 600

local function point(location)
    return Vector(location.x, location.y, location.z or 0)
end

-- Returns an ability by slot, or an item: slot i of the items is -1 - i.
local function ability_of(bot, slot)
    local ability
    if slot >= 0 then
        ability = bot:GetAbilityInSlot(slot)
    else
        ability = bot:GetItemInSlot(-1 - slot)
    end
    return ability, ability == nil and 'nothing in slot ' .. slot or nil
end

local function unit_of(handle)
    if handle == nil or handle < 0 or handle == NO_HANDLE then return nil, 'no target' end
    local unit = GetBotByHandle(handle)
    if unit == nil or unit:IsNull() or not unit:IsAlive() then return nil, 'no unit ' .. handle end
    return unit
end

-- Returns `act(target)`, or the reason why there is no target.
local function with(target, reason, act)
    if target == nil then return reason end
    return act(target)
end

local function with_ability(bot, slot, act)
    local ability, reason = ability_of(bot, slot)
    return with(ability, reason, act)
end

local function with_unit(handle, act)
    local unit, reason = unit_of(handle)
    return with(unit, reason, act)
end

local function own_courier(bot)
    for index = 0, GetNumCouriers() - 1 do
        local courier = GetCourier(index)
        if courier ~= nil and courier:GetPlayerID() == bot:GetPlayerID() then return courier end
    end
    return GetNumCouriers() > 0 and GetCourier(0) or nil
end

local function ability_name(bot, order)
    if order.ability ~= nil then return order.ability end
    local ability, reason = ability_of(bot, order.slot)
    return ability and ability:GetName(), reason
end

local ORDERS = {
    DOTA_UNIT_ORDER_NONE = function() end,
    DOTA_UNIT_ORDER_STOP = function(bot) bot:Action_ClearActions(true) end,
    DOTA_UNIT_ORDER_HOLD_POSITION = function(bot) bot:Action_ClearActions(true) end,
    DOTA_UNIT_ORDER_MOVE_TO_POSITION = function(bot, action)
        bot:Action_MoveToLocation(point(action.moveToLocation.location))
    end,
    DOTA_UNIT_ORDER_MOVE_DIRECTLY = function(bot, action)
        bot:Action_MoveDirectly(point(action.moveDirectly.location))
    end,
    DOTA_UNIT_ORDER_MOVE_TO_TARGET = function(bot, action)
        return with_unit(action.moveToTarget.target, function(unit) bot:Action_MoveToUnit(unit) end)
    end,
    DOTA_UNIT_ORDER_ATTACK_MOVE = function(bot, action)
        bot:Action_AttackMove(point(action.attackMove.location))
    end,
    DOTA_UNIT_ORDER_ATTACK_TARGET = function(bot, action)
        return with_unit(action.attackTarget.target, function(unit)
            bot:Action_AttackUnit(unit, action.attackTarget.once == true)
        end)
    end,
    DOTA_UNIT_ORDER_CAST_NO_TARGET = function(bot, action)
        return with_ability(bot, action.cast.abilitySlot, function(ability)
            if not TREE_ITEMS[ability:GetName()] then return bot:Action_UseAbility(ability) end
            return with(bot:GetNearbyTrees(TREE_REACH)[1], 'no tree', function(tree)
                bot:Action_UseAbilityOnTree(ability, tree)
            end)
        end)
    end,
    DOTA_UNIT_ORDER_CAST_TARGET = function(bot, action)
        return with_unit(action.castTarget.target, function(unit)
            return with_ability(bot, action.castTarget.abilitySlot, function(ability)
                bot:Action_UseAbilityOnEntity(ability, unit)
            end)
        end)
    end,
    DOTA_UNIT_ORDER_CAST_POSITION = function(bot, action)
        return with_ability(bot, action.castLocation.abilitySlot, function(ability)
            bot:Action_UseAbilityOnLocation(ability, point(action.castLocation.location))
        end)
    end,
    DOTA_UNIT_ORDER_CAST_TARGET_TREE = function(bot, action)
        return with_ability(bot, action.castTree.abilitySlot, function(ability)
            bot:Action_UseAbilityOnTree(ability, action.castTree.tree)
        end)
    end,
    DOTA_UNIT_ORDER_CAST_TOGGLE = function(bot, action)
        return with_ability(bot, action.castToggle.abilitySlot, function(ability) ability:ToggleAutoCast() end)
    end,
    DOTA_UNIT_ORDER_TRAIN_ABILITY = function(bot, action)
        local name, reason = ability_name(bot, action.trainAbility)
        return with(name, reason, function(ability) bot:ActionImmediate_LevelAbility(ability) end)
    end,
    DOTA_UNIT_ORDER_PURCHASE_ITEM = function(bot, action)
        local result = bot:ActionImmediate_PurchaseItem(action.purchaseItem.itemName)
        return result ~= PURCHASE_ITEM_SUCCESS and 'purchase result ' .. tostring(result) or nil
    end,
    DOTA_UNIT_ORDER_SELL_ITEM = function(bot, action)
        return with_ability(bot, -1 - action.sellItem.slot, function(item) bot:ActionImmediate_SellItem(item) end)
    end,
    DOTA_UNIT_ORDER_DROP_ITEM = function(bot, action)
        return with_ability(bot, -1 - action.dropItem.slot, function(item)
            bot:Action_DropItem(item, point(action.dropItem.location))
        end)
    end,
    DOTA_UNIT_ORDER_PICKUP_RUNE = function(bot, action) bot:Action_PickUpRune(action.pickupRune.rune) end,
    -- Of clients before 7.24; a later one has no shrines, and the order is refused there.
    ACTION_USE_SHRINE = function(bot, action)
        return with_unit(action.useShrine.shrine, function(shrine) bot:Action_UseShrine(shrine) end)
    end,
    ACTION_SWAP_ITEMS = function(bot, action)
        bot:ActionImmediate_SwapItems(action.swapItems.slotA, action.swapItems.slotB)
    end,
    ACTION_COURIER = function(bot, action)
        return with(own_courier(bot), 'no courier', function(courier)
            bot:ActionImmediate_Courier(courier, action.courier.action)
        end)
    end,
    DOTA_UNIT_ORDER_BUYBACK = function(bot)
        if bot:IsAlive() then return 'alive' end
        bot:ActionImmediate_Buyback()
    end,
    DOTA_UNIT_ORDER_GLYPH = function(bot) bot:ActionImmediate_Glyph() end,
    ACTION_CHAT = function(bot, action)
        bot:ActionImmediate_Chat(action.chat.message, action.chat.toAllchat == true)
    end,
}

local orders = {}

function orders.run(bot, action)
    local order = ORDERS[action.actionType]
    if order == nil then return 'unknown order ' .. tostring(action.actionType) end
    local ok, reason = pcall(order, bot, action)
    if not ok then return 'error: ' .. tostring(reason) end
    return reason
end

return orders
